# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's arithmetic on what a peer or a local user chooses, built for user space.

Its functions are those of each line's source with the series; arithmetic without a word size says
what they must return.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requirements import missing
from rocelab.errors import MissingError
from rocelab.kernel_lines import LINES
from rocelab.testbed import artifacts

pytestmark = pytest.mark.slow

KERNEL = Path(__file__).parents[3] / "kernel"
RXE = "drivers/infiniband/sw/rxe"
U64 = 1 << 64
ADDRESS_END = 1 << 47
"""Of a process: what can be registered lies below it."""
PAGE = 4096

STUBS = """
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8; typedef uint32_t u32; typedef int32_t s32; typedef uint64_t u64;
#define unlikely(x) (x)
#define BIT(n) (1ul << (n))
#define rxe_dbg_mr(...) do { } while (0)
#define pr_warn(...) do { } while (0)
enum { IB_MR_TYPE_DMA, IB_MR_TYPE_USER, IB_MR_TYPE_MEM_REG, RXE_MR_STATE_VALID };
struct ib_mr { int type; u64 iova, length; };
struct ib_umem { u64 address; };
struct ib_umem_odp { u64 start; unsigned int page_shift; };
struct rxe_mr { struct ib_mr ibmr; struct ib_umem *umem; int type, state; };
#define ib_umem_start(umem_odp) ((umem_odp)->start)
"""
CALLS = """
s32 call_psn(u32 a, u32 b) { return psn_compare(a, b); }
int call_region(u64 first, u64 length, u64 iova, u64 n)
{
    struct rxe_mr mr = {.ibmr = {IB_MR_TYPE_USER, first, length}, .type = IB_MR_TYPE_USER};
    return mr_check_range(&mr, iova, n);
}
int call_window(u64 first, u64 length, u64 iova, u64 n)
{
    struct rxe_mw_range range = {.addr = first, .length = length};
    return rxe_mw_check_range(&range, iova, n);
}
"""
CALLS_ODP = """
/* the index of the page in which byte at of the region lies; -1: refused */
int64_t call_odp(u64 first, u64 address, u64 length, u64 iova, u64 n, u64 *offset)
{
    struct ib_umem umem = {address};
    struct ib_umem_odp odp = {address & ~4095ull, 12};
    struct rxe_mr mr = {.ibmr = {IB_MR_TYPE_USER, first, length}, .umem = &umem};
    u64 va;
    if (rxe_odp_iova_to_va(&mr, iova, n, &va))
        return -1;
    *offset = rxe_odp_va_to_page_offset(&odp, va);
    return rxe_odp_va_to_index(&odp, va);
}
"""


def taken(text: str, name: str) -> str:
    """One function, or struct, of the driver."""
    begin = rf"(?:struct {name} \{{|\S[\w \t*]*\b{name}\()"
    match = re.search(rf"^{begin}.*?^}};?\n", text, re.MULTILINE | re.DOTALL)
    assert match, name
    return match[0]


@pytest.fixture(scope="module", params=LINES)
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """Build a line's functions."""
    line = request.param
    try:
        sources = sorted((artifacts.image(line) / "root/usr/src").glob(f"linux-source-*/{RXE}"))
    except MissingError as error:
        missing(error.action)
    folder = tmp_path_factory.mktemp("driver")
    series = [str(path) for path in sorted((KERNEL / "patches/fixes").glob("*.patch"))]
    tree = folder / "tree"
    words = (KERNEL / "patches/lines" / line, folder / "series", *series)
    subprocess.run(["sh", KERNEL / "scripts/line.sh", *words], check=True)
    patches = sorted((folder / "series").glob("*.patch"))
    (folder / "pristine" / RXE).parent.mkdir(parents=True)
    (folder / "pristine" / RXE).symlink_to(sources[0])
    subprocess.run(["cp", "-RL", folder / "pristine", folder / "source"], check=True)
    words = (folder / "source", tree, "the image's", "", *map(str, patches))
    subprocess.run(["sh", KERNEL / "scripts/apply.sh", *words], check=True)

    code = STUBS
    names = {
        "rxe_verbs.h": ("psn_compare", "rxe_mw_range"),
        "rxe_mr.c": ("mr_check_range",),
        "rxe_mw.c": ("rxe_mw_check_range",),
    }
    odp = (tree / RXE / "rxe_odp.c").exists()
    if odp:
        of_odp = ("iova_to_va", "va_to_index", "va_to_page_offset")
        names["rxe_odp.c"] = tuple(f"rxe_odp_{name}" for name in of_odp)
    for file, wanted in names.items():
        text = (tree / RXE / file).read_text()
        code += "".join(taken(text, name) for name in wanted)
    (folder / "driver.c").write_text(code + CALLS + (CALLS_ODP if odp else ""))
    built = folder / "driver.so"
    flags = ("-O2", "-Wall", "-Werror", "-Wno-unused", "-fno-strict-overflow")
    subprocess.run(
        ["gcc", *flags, "-shared", "-fPIC", "-o", built, folder / "driver.c"], check=True
    )
    return Driver(ctypes.CDLL(str(built)), odp)


class Driver:
    """The functions of a line."""

    def __init__(self, library: ctypes.CDLL, odp: bool) -> None:
        self._library = library
        self.odp = odp

    def compare(self, a: int, b: int) -> int:
        """psn_compare()."""
        return int(self._library.call_psn(ctypes.c_uint32(a), ctypes.c_uint32(b)))

    def permits(self, what: str, range_: tuple[int, int], part: tuple[int, int]) -> bool:
        """Whether a region or a window permits access to a part of it."""
        call = getattr(self._library, f"call_{what}")
        return not call(*map(ctypes.c_uint64, (*range_, *part)))

    def page(
        self, iova: int, address: int, length: int, part: tuple[int, int]
    ) -> tuple[int, int] | None:
        """Page and offset in it where a part of a region with on-demand paging begins."""
        offset = ctypes.c_uint64()
        call = self._library.call_odp
        call.restype = ctypes.c_int64
        words = map(ctypes.c_uint64, (iova, address, length, *part))
        index = call(*words, ctypes.byref(offset))
        return None if index < 0 else (index, offset.value)


edges = st.sampled_from([0, 1, PAGE - 1, PAGE, 1 << 31, 1 << 32, 1 << 43, 1 << 63, U64 - PAGE])
words = st.one_of(
    st.integers(0, U64 - 1),
    st.builds(lambda edge, more: (edge + more) % U64, edges, st.integers(-9, 9)),
)
psns = st.integers(0, (1 << 24) - 1)


def near(range_: tuple[int, int]) -> st.SearchStrategy[tuple[int, int]]:
    """Parts within a range, at its edges, or anywhere."""
    first, length = range_
    close = st.integers(-2, 2)
    starts = st.one_of(
        words,
        st.builds(lambda a, more: (first + a + more) % U64, st.sampled_from([0, length]), close),
        st.builds(lambda a: (first + a) % U64, st.integers(0, length)),
    )
    lengths = st.one_of(
        words,
        st.builds(lambda more: (length + more) % U64, close),
        st.integers(0, min(length, PAGE)),
    )
    return st.tuples(starts, lengths)


cases = st.tuples(words, words).flatmap(lambda range_: st.tuples(st.just(range_), near(range_)))


@given(case=cases)
@pytest.mark.parametrize("what", ["region", "window"])
def test_only_what_lies_within_is_permitted(
    driver: Driver, what: str, case: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """A part is permitted where each of its bytes is one of the range.

    Of a range that reaches past the last address, a driver may refuse more.
    """
    (first, length), (start, n) = case
    within = first <= start and start + n <= first + length
    permitted = driver.permits(what, *case)
    assert permitted <= within
    if first + length <= U64:
        assert permitted == within


@given(
    iova=words,
    address=st.integers(0, ADDRESS_END - 1),
    length=st.integers(1, 1 << 46),
    data=st.data(),
)
def test_a_page_of_a_region_with_on_demand_paging(
    driver: Driver, iova: int, address: int, length: int, data: st.DataObject
) -> None:
    """The place of a byte is its distance from the iova, from the region's address on."""
    if not driver.odp:
        pytest.skip("the driver has no on-demand paging")
    start, n = data.draw(near((iova, length)))
    place = driver.page(iova, address, length, (start, n))
    if start < iova or start + n > iova + length:
        assert place is None
    else:
        at = address % PAGE + start - iova
        assert place == (at // PAGE, at % PAGE)


@given(a=psns, distance=st.integers(-(1 << 23) + 1, (1 << 23) - 1))
def test_packet_sequence_numbers_wrap(driver: Driver, a: int, distance: int) -> None:
    """A number is after another if it is less than half of all numbers ahead."""
    b = (a + distance) % (1 << 24)
    compared = driver.compare(b, a)
    assert (compared > 0, compared < 0) == (distance > 0, distance < 0)
