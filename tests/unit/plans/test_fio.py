# SPDX-License-Identifier: GPL-2.0-or-later
"""fio: command line, and the parser on recorded and on hostile output."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import CellError, UsageError
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job, Measurement
from rocelab.plans.catalog import TESTS
from rocelab.plans.plan import Plan

HERE = Path(__file__).parents[1] / "data"
READ = (HERE / "fio-3.39-nvme_randread.txt").read_text()
WRITE = (HERE / "fio-3.39-nvme_write.txt").read_text()


def job(
    test: str = "nvme_randread", size: int = 4096, iterations: int = 200, depth: int = 1
) -> Job:
    ends = End("10.0.0.1"), End("10.0.0.2")
    return Job(TESTS["fio", test], size, iterations, 1, 14, 5001, *ends, depth=depth)


def read(text: str, of: Job | None = None) -> Measurement:
    return TOOLS["fio"].parse(of or job(), text)


def figures(measurement: Measurement) -> dict[str, tuple[str, float, str]]:
    return {v.metric: (v.kind, v.value, v.unit) for v in measurement.values}


def test_reads() -> None:
    said = json.loads(READ)["jobs"][0]["read"]
    measurement = read(READ)
    values = figures(measurement)
    for name, key in (("mean", "mean"), ("min", "min"), ("max", "max"), ("stdev", "stddev")):
        assert values[f"latency.{name}"] == ("request", said["lat_ns"][key], "ns")
    assert values["latency.p50"][1] == said["lat_ns"]["percentile"]["50.000000"]
    assert values["latency.p99"][1] == said["lat_ns"]["percentile"]["99.000000"]
    assert values["latency.samples"] == ("request", 200, "1")
    assert values["message_rate"] == ("request", pytest.approx(said["iops"], rel=1e-6), "1/s")
    assert values["bandwidth"][1] == pytest.approx(said["bw_bytes"], rel=1e-5)
    assert (measurement.payload_bytes, measurement.messages, measurement.sent) == (
        200 * 4096,
        200,
        200,
    )


def test_rates_of_a_job_that_was_too_short_are_absent() -> None:
    """It took less than 100 ms, which fio counts in whole ones."""
    short = json.loads(READ)
    short["jobs"][0]["read"]["runtime"] = 99
    values = figures(read(json.dumps(short)))
    assert "latency.mean" in values
    assert not {"bandwidth", "message_rate"} & set(values)


def test_writes_with_several_in_flight() -> None:
    measurement = read(WRITE, job("nvme_write", 65536, 50, depth=4))
    assert figures(measurement)["latency.samples"][1] == 50
    assert measurement.payload_bytes == 50 * 65536


def test_the_command_line_says_how_many_blocks() -> None:
    argv = TOOLS["fio"].client(job("nfs_randwrite", 512, 1000, depth=16))
    assert argv[0] == "fio"
    assert {"--rw=randwrite", "--bs=512", "--io_size=512000", "--iodepth=16"} < set(argv)
    assert TOOLS["fio"].server_argv(job()) == ()


def _set(*path: str | int) -> Callable[[Any], Callable[[Any], None]]:
    def to(value: Any) -> Callable[[Any], None]:
        def change(said: Any) -> None:
            for key in path[:-1]:
                said = said[key]
            said[path[-1]] = value

        return change

    return to


_SIDE = ("jobs", 0, "read")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_set("jobs", 0, "error")(5), "its error"),
        (_set("jobs")([]), "not of one job"),
        (_set("jobs")({}), "not of one job"),
        (_set("jobs", 0)(7), "not of one job"),
        (_set("jobs", 0, "job options", "rw")("read"), "its rw"),
        (_set("jobs", 0, "job options", "bs")("512"), "its bs"),
        (_set("jobs", 0, "job options", "iodepth")("8"), "its iodepth"),
        (_set("jobs", 0, "job options")(None), "job options"),
        (_set(*_SIDE, "total_ios")(199), "its number of reads"),
        (_set(*_SIDE, "io_bytes")(1), "its bytes"),
        (_set("jobs", 0, "write", "total_ios")(1), "its number of writes"),
        (_set(*_SIDE, "runtime")(0), "its runtime"),
        (_set(*_SIDE, "runtime")(-1), "its runtime"),
        (_set(*_SIDE, "lat_ns", "N")(1), "samples"),
        (_set(*_SIDE, "lat_ns", "mean")("NaN"), "its mean latency"),
        (_set(*_SIDE, "lat_ns", "mean")(1e18), "not between"),
        (_set(*_SIDE, "lat_ns", "max")(None), "its largest latency"),
        (_set(*_SIDE, "lat_ns", "percentile")([1]), "percentile"),
        (_set(*_SIDE, "lat_ns", "percentile", "99.000000")({}), "its p99"),
    ],
)
def test_wrong_output_is_refused(change: Callable[[Any], None], problem: str) -> None:
    said = json.loads(READ)
    change(said)
    with pytest.raises(CellError) as error:
        read(json.dumps(said))
    assert problem in error.value.what


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "fio: failed", "null", "3"])
def test_what_is_not_fios_json_is_refused(text: str) -> None:
    with pytest.raises(CellError):
        read(text)


@given(st.integers(0, len(READ)), st.text(max_size=3))
def test_garbled_output_is_read_or_refused(at: int, text: str) -> None:
    with suppress(CellError):
        read(READ[:at] + text + READ[at + 1 :])


def plan(benchmark: str, testbed: str = "") -> Plan:
    text = f'[plan]\nname = "x"\ntransports = ["tcp", "rxe-v2"]\n[testbed]\n{testbed}\n'
    return plan_file.from_toml(f"{text}[[benchmark]]\n{benchmark}", "x.toml")


_READS = 'tool = "fio"\ntest = "nfs_read"\nsizes = [4096]\n'


def test_a_plan_has_the_number_of_requests_in_flight() -> None:
    with_depth = plan(f"{_READS}depth = 16")
    assert with_depth.benchmarks[0].depth == 16
    assert plan_file.from_dict(with_depth.to_dict(), "again") == with_depth
    assert [cell.test.name for cell in plan(_READS).cells()] == ["nfs_read"] * 20


@pytest.mark.parametrize(
    ("benchmark", "testbed", "what"),
    [
        ('tool = "perftest"\ntest = "read_lat"\nsizes = [8]\ndepth = 2\n'
         'transports = ["rxe-v2"]', "", "depth"),
        (f"{_READS}depth = 0", "", "depth"),
        (_READS, 'provider = "veth"', "one kernel"),
        (_READS.replace("4096", "1000"), "", "multiple of 512"),
    ],
)  # fmt: skip
def test_a_plan_that_fio_cannot_follow(benchmark: str, testbed: str, what: str) -> None:
    with pytest.raises(UsageError) as error:
        plan(benchmark, testbed)
    assert what in str(error.value.what) + str(error.value.cause)
