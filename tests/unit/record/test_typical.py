# SPDX-License-Identifier: GPL-2.0-or-later
"""A typical packet: what disturbs a few moves it little, and those that are not are counted."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rocelab.errors import CellError
from rocelab.record import rxestat_document
from rocelab.record.histogram import Histogram, from_row, merge

SUMMED_BELOW = 65536
repeatable = settings(derandomize=True, max_examples=100)


def upper_edge(value: int) -> int:
    """The smallest value above the bucket, by the scheme of ebpf/lib/loglin.h."""
    width = 4
    while value >= 16 * width:
        width *= 2
    return (value // width + 1) * width


EDGES = [0, *sorted({upper_edge(value) for value in range(SUMMED_BELOW)})]


def row(values: Sequence[int]) -> dict[str, Any]:
    """What rxestat writes of these times."""
    buckets: dict[int, list[int]] = {}
    for value in sorted(values):
        buckets.setdefault(upper_edge(value), []).append(value)
    return {
        "count": len(values),
        "sum_ns": sum(values),
        "min_ns": min(values),
        "max_ns": max(values),
        "buckets": [[upper, len(inside)] for upper, inside in buckets.items()],
        "bucket_sums_ns": [
            sum(inside) for upper, inside in buckets.items() if upper <= SUMMED_BELOW
        ],
    }


def histogram(values: Sequence[int]) -> Histogram:
    made = from_row(row(values))
    assert made is not None
    return made


def typical(values: Sequence[int]) -> tuple[float, int]:
    result = histogram(values).typical
    assert result is not None
    return result.mean, result.atypical


def packets(level: int, count: int, spread: float, seed: int) -> list[int]:
    """Times near `level`, which differ by up to `spread` of it."""
    dice = random.Random(seed)
    return [round(level * (1 + spread * (2 * dice.random() - 1))) for _ in range(count)]


@pytest.mark.slow
@repeatable
@given(
    level=st.integers(50, 5000),
    count=st.integers(100, 1000),
    spread_and_share=st.sampled_from([(0, 0.24), (0.005, 0.05), (0.02, 0.05), (0.1, 0.01)]),
    # from a cache that was empty to a millisecond in an interrupt
    more=st.lists(st.integers(1, 1_000_000), min_size=50, max_size=50),
    seed=st.integers(0, 99),
)
@example(level=504, count=200, spread_and_share=(0.02, 0.05), more=[28] * 50, seed=0)
@example(level=321, count=200, spread_and_share=(0, 0.005), more=[28_000] * 50, seed=0)
def test_interrupts_of_any_length_move_it_by_one_percent_at_most(
    level: int, count: int, spread_and_share: tuple[float, float], more: list[int], seed: int
) -> None:
    """One in twenty of packets that cost nearly the same; fewer if they vary by 10 %."""
    spread, share = spread_and_share
    quiet = packets(level, count, spread, seed)
    hit = random.Random(seed).sample(range(count), max(1, int(share * count)))
    disturbed = list(quiet)
    for at, longer in zip(hit, more * 6, strict=False):
        disturbed[at] += longer
    before, after = typical(quiet)[0], typical(disturbed)[0]
    assert after == pytest.approx(before, rel=0.01)
    # what the mean shows of it is exact
    added = sum(disturbed) - sum(quiet)
    means = histogram(quiet).mean, histogram(disturbed).mean
    assert means[1] - means[0] == pytest.approx(added / count, rel=1e-6, abs=1e-6)


def test_one_interrupt_in_two_hundred() -> None:
    """As seen: it moves a mean by 7 %."""
    quiet = [320] * 200
    disturbed = [320] * 199 + [320 + 4_480]
    assert histogram(disturbed).mean / histogram(quiet).mean == pytest.approx(1.07)
    assert typical(quiet) == (320, 0)
    assert typical(disturbed) == (320, 1)


@repeatable
@given(
    level=st.integers(64, 5000),
    times=st.floats(1.3, 20),
    count=st.integers(20, 1000),
    share=st.floats(0.02, 0.25),
)
def test_packets_of_another_kind_are_counted(
    level: int, times: float, count: int, share: float
) -> None:
    """Of two kinds it is the more frequent one, exactly, and it says how many the other has."""
    others = max(1, int(share * count))
    values = [level] * (count - others) + [round(level * times)] * others
    assert typical(values) == (level, others)


def test_the_other_kind_may_be_the_cheaper_one() -> None:
    assert typical([391] * 150 + [320] * 50) == (391, 50)


@pytest.mark.parametrize(
    ("others", "mean", "atypical"), [(50, 100, 50), (75, 125, 200), (100, 150, 200), (150, 200, 50)]
)
def test_two_kinds_of_equal_number(others: int, mean: float, atypical: int) -> None:
    """It goes from one to the other without a step, and then says that no packet is like it."""
    assert typical([100] * (200 - others) + [200] * others) == (mean, atypical)


@repeatable
@given(st.lists(st.integers(0, SUMMED_BELOW - 1), min_size=1, max_size=300))
def test_it_lies_in_the_middle(values: list[int]) -> None:
    """The bound of the error: the width of the buckets in which the middle begins and ends."""
    mean, atypical = typical(values)
    ordered, count = sorted(values), len(values)
    first, last = ordered[count // 4], ordered[-(-3 * count // 4) - 1]
    lower = max(edge for edge in EDGES if edge <= first)
    assert lower <= mean + 1e-6
    assert mean <= upper_edge(last)
    assert 0 <= atypical <= count


@pytest.mark.slow
@repeatable
@given(st.lists(st.integers(1, 200), min_size=1, max_size=8), st.integers(1, 300))
def test_packets_that_repeat_give_an_exact_figure(numbers: list[int], apart: int) -> None:
    """No matter in which order: kinds in buckets apart, as instructions are."""
    values = [v for at, number in enumerate(numbers) for v in [1000 * (at + apart)] * number]
    assume(len({upper_edge(value) for value in values}) == len(numbers))
    assume(values[-1] < SUMMED_BELOW)
    repeated = [value for value in values for _ in range(4)]
    middle = repeated[len(values) : 3 * len(values)]
    assert typical(values)[0] == pytest.approx(sum(middle) / len(middle))


@repeatable
@given(
    *(st.lists(st.integers(0, 1_000_000), min_size=1, max_size=100) for _ in range(2)),
)
def test_merging_is_as_if_measured_together(a: list[int], b: list[int]) -> None:
    """Two sizes of packets, or two devices."""
    merged, whole = merge([histogram(a), histogram(b)]), histogram(a + b)
    assert merged == whole
    assert merged.typical == whole.typical


@repeatable
@given(st.integers(SUMMED_BELOW, 2**32 - 1), st.integers(1, 9))
def test_a_far_bucket_has_the_rest_of_the_sum(value: int, count: int) -> None:
    """rxestat does not know the sums of these buckets; one alone has all that is left."""
    mean, atypical = typical([value] * (10 * count) + [100] * count)
    assert mean == pytest.approx(value)
    assert atypical == count


def test_an_older_document_has_none() -> None:
    """Without the sums of buckets, the bucket's middle would be all that is known."""
    old = row([320] * 200)
    del old["bucket_sums_ns"]
    older = from_row(old)
    assert older is not None
    assert older.typical is None
    assert merge([older, histogram([320])]).typical is None


@pytest.mark.parametrize(
    "sums", [[], [1, 2], ["many"], None, [[1]], [-1], [10**400], [200 * 352], [64_001]]
)
def test_other_sums_are_refused(sums: object) -> None:
    with pytest.raises(CellError):
        from_row(row([320] * 200) | {"bucket_sums_ns": sums})


def test_its_values() -> None:
    """The mean stays, and an encapsulation of typical stages comes with it."""
    stages = {"bth": 107, "route": 144, "net": 320, "icrc": 1072}
    document: dict[str, Any] = {"schema": "rocelab.rxestat/1", "lost": 0, "rows": []}
    for stage, cost in stages.items():
        times = [cost] * 198 + [cost + 5_000] * 2
        key = {"dir": "tx", "opcode_class": "RDMA_WRITE", "stage": stage}
        document["rows"].append(row(times) | key)
    values = {v.metric: v for v in rxestat_document.parse(document).values()}
    assert values["stage.tx.net.typical"].value == 320
    assert values["stage.tx.net.typical"].unit == "ns"
    assert (values["stage.tx.net.atypical"].value, values["stage.tx.net.atypical"].unit) == (2, "1")
    assert values["stage.tx.net.mean"].value == 370
    assert values["encapsulation.typical"].value == sum(stages.values())
    assert values["encapsulation.mean"].value == sum(stages.values()) + 4 * 50
    old = copy.deepcopy(document)
    del old["rows"][0]["bucket_sums_ns"]
    names = {v.metric for v in rxestat_document.parse(old).values()}
    assert "stage.tx.net.typical" in names
    assert not {"encapsulation.typical", "stage.tx.bth.typical"} & names


def test_a_recorded_document(data: Path) -> None:
    """Of two real machines that count instructions: rxestat's sums are those of its buckets."""
    document = json.loads((data / "rxestat-icount-write_lat-64.json").read_text())
    stages = rxestat_document.parse(document)
    for key, stage in stages.histograms.items():
        assert stage.sums is not None
        assert sum(stage.sums.values()) <= stage.sum
        for upper, total in stage.sums.items():
            lower = max(edge for edge in EDGES if edge < upper)
            assert stage.buckets[upper] * lower <= total < stage.buckets[upper] * upper, key
    copied = stages.histograms["tx", "RDMA_WRITE", "alloc"]
    assert copied.typical is not None
    assert copied.typical.mean == 983
    assert copied.typical.atypical == sum(n for upper, n in copied.buckets.items() if upper > 1024)
