# SPDX-License-Identifier: GPL-2.0-or-later
"""What strangers write costs time and memory in proportion to its bytes, up to a stated limit."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocelab import json_text, limits, strict
from rocelab.errors import RocelabError, UsageError
from rocelab.measure import counters, environment, machine_settings, machine_work, pinning
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.mpi.suite import MpiJob
from rocelab.plans.benchmarks.mpi.suites import SUITES
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job
from rocelab.plans.catalog import TESTS
from rocelab.plans.plan import MpiPlan
from rocelab.record import driver_trace, folded_stacks, read, rxecpu_document, rxestat_document
from rocelab.record.share import Mask
from rocelab.record.text import one_line
from rocelab.testbed import control_network, gid
from rocelab.testbed.faults import roce_frame
from rocelab.testbed.ssh import data_interface, inventory
from rocelab.testbed.verbs_ports import Sysfs
from synthetic_run import Synthetic

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
BYTES = 1 << 16
"""Of an input; what is quadratic takes minutes for so many."""
MAX_SECONDS = 2.5
"""Of the processor: the slowest reader takes a tenth."""
MAX_PER_BYTE = 200
"""Bytes of memory; the largest is a list of empty tables in TOML."""
FIXED = 4 << 20


Words = list[str]


@dataclass(frozen=True)
class Reader:
    """What reads a text, and the tokens that texts for it are made of."""

    read: Callable[[str], object]
    tokens: tuple[str, ...]

    record: str = ""
    """A program's output, into which the tokens are put."""

    def text(self, begin: Words, repeated: Words, end: Words, at: float) -> str:
        """BYTES of a text, of which `repeated` is the most."""
        if self.tokens is JSON:
            some, many, last = (",".join(words or ["1"]) for words in (begin, repeated, end))
            unit = f'{{"a":[{many}],"b":1}},'
            members = f'"rows":[{unit * (BYTES // len(unit))}{last}],"packets":[{some}]'
            return f"{{{members}}}" if at < 0.5 else f"[{{{members}}}]"
        first, unit, last = map("".join, (begin, repeated, end))
        unit = unit or "a"
        lines = self.record.splitlines(keepends=True)
        place = round(at * len(lines))
        head, tail = ("".join(some) for some in (lines[:place], lines[place:]))
        return head + first + unit * (BYTES // len(unit)) + last + tail


def _toml(check: Callable[[dict[str, Any]], object]) -> Callable[[str], object]:
    return lambda text: check(strict.parse_toml(text, "x.toml", kind="plan"))


def _all(parse: Callable[[Any], Any]) -> Callable[[str], object]:
    return lambda text: list(parse(text))


def _pair(tool: str, test: str, size: int) -> Callable[[str], object]:
    ends = End("10.0.0.1", "rxe0", 1, 3), End("10.0.0.2", "rxe1", 2, 5)
    job = Job(TESTS[tool, test], size, 21, 1, 18, 18600, *ends)
    return lambda text: TOOLS[tool].parse(job, text)


def _mpi(tool: str, test: str, size: int = 4) -> Callable[[str], object]:
    job = MpiJob(TESTS[tool, test], (size,), 20, MpiPlan(2, 1, "osu", 64, True, True, ()))
    return lambda text: SUITES[tool].parse(job, text)


JSON = ("1", "[]", "{}", '"a"', "null", "9" * 40, "1e999", '{"a":1}', "[[1]]", '{"rows":[]}')
"""Values: what is no JSON ends at once."""
TOML = (
    "a", ".", "=", "1", "[", "]", "[[a]]", "{", "}", ",", '"', "'", "\n", "#", "a.", "[a]\n",
    "a=1\n", '"""', "x=[", "1,", "{a=1},", "[plan]\n", "[[benchmark]]\n", "[[host]]\n",
    "\\u0041",
)  # fmt: skip
LINES = (
    *(
        "a",
        " ",
        "\n",
        ":",
        "/",
        "1",
        ".",
        "#",
        "\t",
        "- ",
        "-",
        "=",
        "0x",
        ";",
        "[",
        ",",
        "%",
        "\r",
    ),
    *("rxe0/parent:", "running;", "== ", "\n\n", "  "),
)


def _recorded(read: Callable[[str], object], name: str) -> Reader:
    """What reads a program's output, with the lines of one, and their halves."""
    text = (DATA / name).read_text()
    lines = list(dict.fromkeys(text.splitlines(keepends=True)))[:40]
    return Reader(read, (*LINES, *lines, *(line[: len(line) // 2] for line in lines)), text)


READERS = {
    "plan": Reader(_toml(lambda document: plan_file.from_dict(document, "x")), TOML),
    "inventory": Reader(_toml(lambda document: inventory.from_dict(document, "x")), TOML),
    "JSON": Reader(json_text.parse_any, JSON),
    "rxestat": Reader(rxestat_document.parse_text, JSON),
    "rxecpu": Reader(rxecpu_document.parse_text, JSON),
    "iperf3": Reader(_pair("iperf3", "tcp_bw", 4096), JSON),
    "fio": Reader(_pair("fio", "nvme_read", 4096), JSON),
    "pingpong": Reader(_pair("pingpong", "latency", 64), JSON),
    "mpibench": Reader(_mpi("mpibench", "latency"), JSON),
    "ip address": Reader(control_network.addresses, JSON),
    "ip link": Reader(lambda text: data_interface.parse(text, "a", host="h"), JSON),
    "ethtool": Reader(lambda text: environment.settings("a", text), JSON),
    "folded stacks": Reader(lambda text: list(folded_stacks.parse(text.encode())), LINES),
    "events": Reader(_all(driver_trace.parse), LINES),
    "perftest": _recorded(
        _pair("perftest", "send_lat", 4096), "perftest-25.01.0+0.80-send_lat-4096-n21.txt"
    ),
    "qperf": _recorded(_pair("qperf", "tcp_lat", 64), "qperf-0.4.11-tcp_lat-64.txt"),
    "ftp": Reader(
        _pair("ftp", "get", 64),
        (*LINES, "rocelab-times 1.000000 2.000000\n", "curl 226 1.0 1.0 64\n"),
    ),
    "omb": _recorded(_mpi("omb", "latency"), "osu-6.1-latency.txt"),
    "imb": _recorded(_mpi("imb", "latency"), "imb-2021.3-pingpong.txt"),
    "npb": _recorded(_mpi("npb", "cg", 0), "npb-3.2-cg.txt"),
    "hpcc": _recorded(_mpi("hpcc", "all", 0), "hpcc-1.5.0.txt"),
    "skampi": _recorded(_mpi("skampi", "bcast"), "skampi-5.0-bcast.txt"),
    "counters": Reader(counters.parse, LINES),
    "settings": Reader(machine_settings.parse, LINES),
    "work": Reader(machine_work.parse, LINES),
    "pinning": Reader(pinning.parse, LINES),
    "cpuinfo": Reader(environment.cpu, LINES),
    "sysctl": Reader(environment.sysctls, LINES),
    "crypto": Reader(environment.crc32_drivers, LINES),
    "packages": Reader(environment.packages, LINES),
    "GIDs": Reader(gid.parse, LINES),
    "sysfs": Reader(Sysfs.parse, LINES),
    "frame": Reader(lambda text: roce_frame.parse(text.encode()), LINES),
    "mask": Reader(Mask(("n1", "a")).words, (*LINES, "fe80::", "10.0.", "n1", "52:")),
    "one line": Reader(one_line, LINES),
}


def time_of(reader: Reader, text: str) -> float:
    """Seconds of the processor that reading a text takes."""
    began = time.process_time()
    with suppress(RocelabError, ValueError):
        reader.read(text)
    return time.process_time() - began


def cost(reader: Reader, text: str) -> tuple[float, int]:
    """Seconds of the processor, and bytes of memory, that reading a text takes while traced."""
    tracemalloc.start()
    try:
        return time_of(reader, text), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_costs_in_proportion(name: str) -> None:
    """Whatever few tokens are repeated, between a beginning and an end."""
    reader = READERS[name]
    few = st.lists(st.sampled_from(reader.tokens), max_size=4)

    @settings(max_examples=25)
    @given(few, few.filter(bool), few, st.sampled_from([0, 0.25, 0.5, 0.75, 1]))
    def within(begin: Words, repeated: Words, end: Words, at: float) -> None:
        text = reader.text(begin, repeated, end, at)
        seconds, peak = cost(reader, text)
        assert seconds < MAX_SECONDS, (seconds, begin, repeated, end)
        assert peak < MAX_PER_BYTE * len(text) + FIXED, (peak, begin, repeated, end)

    within()


HEAD = '[plan]\nname = "x"\nrepetitions = 99\ntransports = ["rxe-v2", "rxe-v1"]\n'
BENCHMARK = '[[benchmark]]\ntool = "perftest"\ntest = "write_lat"\nsizes = [64]\nlabel = "l{}"\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + "".join(map(BENCHMARK.format, range(20_000)))[: 1 << 20], "items|TOML"),
        (HEAD + "".join(map(BENCHMARK.format, range(100))), "19800 cells"),
        (HEAD.replace('"rxe-v2"', ", ".join(f'"x{n}"' for n in range(90_000))), "90001 items"),
        (HEAD + BENCHMARK.replace("64", ",".join(map(str, range(100_000)))), "100000 items"),
        (HEAD.replace("99", "9" * 400), "out of range"),
        (HEAD.replace("99", "9" * 5000), "TOML"),
    ],
    ids=["benchmarks", "cells", "transports", "sizes", "400 digits", "5000 digits"],
)
def test_plans_that_ask_for_too_much(text: str, why: str) -> None:
    assert time_of(READERS["plan"], text) < 5
    with pytest.raises(UsageError, match=why):
        READERS["plan"].read(text)


@pytest.mark.parametrize("digits", [21, 400, 5000])
def test_whole_numbers_of_any_length(digits: int) -> None:
    document = json_text.parse(f'{{"a": {"9" * digits}, "b": -{"9" * digits}, "c": 7}}')
    assert read.Json(document).integer("c") == 7
    for key in ("a", "b"):
        assert digits < 300 or read.Json(document).integer(key) is None
        assert len(read.Json(document).text(key)) < 50


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": [' + "[]," * limits.MAX_JSON_VALUES + "1]}", "too many values"),
        ('{"a":' * 100 + "1" + "}" * 100, "too deeply"),
        ("[" * 100_000, "too deeply"),
    ],
    ids=["many", "deep", "deeper"],
)
def test_json_beyond_a_limit(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        json_text.parse_any(text)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["run.json", "cells"])
def test_a_run_of_more_cells_than_any_has(tmp_path: Path, where: str) -> None:
    run = Synthetic(transports=("tcp",), tests=("write_lat",), sizes=(64,), repetitions=1)
    folder = run.write(tmp_path / "run")
    if where == "cells":
        for number in range(limits.MAX_CELLS):
            (folder / "cells" / f"c{number}").mkdir()
    else:
        path = folder / "run.json"
        names = ",".join(f'"c{n}"' for n in range(limits.MAX_CELLS + 1))
        path.write_text(re.sub(r'"cells": \[[^]]*\]', f'"cells": [{names}]', path.read_text()))
    with pytest.raises(UsageError, match="cells"):
        read.load(folder)


def test_the_page_of_limits() -> None:
    """SECURITY.md has what the code does."""
    assert limits.page() in (ROOT / "SECURITY.md").read_text()
