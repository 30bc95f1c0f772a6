# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest: the parser on recorded output of version 25.01.0+0.80 (Debian 13) over rxe."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import CellError
from rocelab.plans.benchmarks.perftest import client, completion_error, parse, server
from rocelab.plans.benchmarks.tool import End, Job, Measurement
from rocelab.plans.catalog import TESTS

HERE = Path(__file__).parents[1] / "data"
VERSION = "25.01.0+0.80"


def job(test: str, size: int, iterations: int) -> Job:
    ends = End("10.0.0.1", "rxe0", 1, 3), End("10.0.0.2", "rxe1", 2, 5)
    return Job(TESTS["perftest", test], size, iterations, 1, 18, 18600, *ends)


def text(test: str, size: int, iterations: int) -> str:
    return (HERE / f"perftest-{VERSION}-{test}-{size}-n{iterations}.txt").read_text()


def figures(measurement: Measurement) -> dict[str, tuple[str, float, str]]:
    return {v.metric: (str(v.kind), v.value, v.unit) for v in measurement.values}


@pytest.mark.parametrize(
    ("test", "size", "iterations", "kind"),
    [
        ("write_lat", 64, 20, "one_way_half_rtt"),
        ("send_lat", 4096, 21, "one_way_half_rtt"),
        ("read_lat", 1024, 20, "round_trip"),
        ("atomic_lat", 8, 20, "round_trip"),
    ],
)
def test_latency_is_computed_from_raw_samples(
    test: str, size: int, iterations: int, kind: str
) -> None:
    output = text(test, size, iterations)
    measurement = parse(job(test, size, iterations), output)
    got = figures(measurement)
    assert {k for k, _, _ in got.values()} == {kind}
    # an independent reading of the first block of samples
    block = output.split("#, usec\n")[1]
    samples = [float(line.split(", ")[1]) * 1e3 for line in block.splitlines() if ", " in line]
    assert len(samples) == iterations - 1 == got["latency.samples"][1]
    assert got["latency.mean"][1] == pytest.approx(sum(samples) / len(samples))
    assert got["latency.p50"][1] == pytest.approx(statistics.median(samples))
    assert got["latency.max"][1] == max(samples)
    assert got["latency.min"][1] == min(samples)
    assert got["latency.stdev"][1] == pytest.approx(statistics.stdev(samples))
    assert measurement.path_mtu == 4096
    assert measurement.messages == iterations
    assert measurement.payload_bytes == (0 if test == "atomic_lat" else size * iterations)


def test_the_worst_samples_are_kept() -> None:
    """perftest's t_max is the third worst of 19; the real worst one is 8.05 ms."""
    values = figures(parse(job("write_lat", 64, 20), text("write_lat", 64, 20)))
    assert values["latency.max"] == ("one_way_half_rtt", 8050620.0, "ns")
    assert "4668.22" in text("write_lat", 64, 20).splitlines()[-2]


@pytest.mark.parametrize(
    ("test", "size", "iterations", "bandwidth"),
    [
        # the finer of the two roundings: messages when they are small, MiB when they are large
        ("send_bw", 64, 1000, 0.003276e6 * 64),
        ("read_bw", 4096, 200, 0.003162e6 * 4096),
        ("write_bw", 1048576, 10, 13.30 * 2**20),
    ],
)
def test_bandwidth(test: str, size: int, iterations: int, bandwidth: float) -> None:
    values = figures(parse(job(test, size, iterations), text(test, size, iterations)))
    assert values == {
        "bandwidth": ("one_way", pytest.approx(bandwidth), "bytes/s"),
        "message_rate": ("one_way", pytest.approx(bandwidth / size), "1/s"),
    }


def test_atomics_have_a_rate_and_no_bandwidth() -> None:
    values = figures(parse(job("atomic_bw", 8, 200), text("atomic_bw", 8, 200)))
    assert values == {"message_rate": ("round_trip", pytest.approx(7480.0), "1/s")}


LAT = text("write_lat", 64, 20)
BW = text("send_bw", 64, 1000)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (LAT, "", "no line with the MTU"),
        (LAT, LAT[: LAT.index(" #bytes")], "no table of results"),
        (LAT, LAT[: LAT.index(" 64      20")], "no complete line"),
        ("#, usec", "#, cycles", "'cycles', not in usec"),
        ("#, usec", "# usec", "no raw samples"),
        ("\n7, ", "\n8, ", "6 raw samples for 20 iterations"),
        ("\n7, ", "\n7, nan", "a raw sample is not a number"),
        ("\n7, ", "\n7, -", "a raw sample is -"),
        ("\n7, 1621.48", "\n7, 0", "a raw sample is zero"),
        ("\n7, 1621.48", "\n7, 1e10", "ran backwards"),
        (" 64      20  ", " 128     20  ", "'128' bytes"),
        (" 64      20  ", " 64      21  ", "'21' iterations"),
        ("453.76", "453,76", "t_min is not a number"),
        ("453.76", "inf", "t_min is inf"),
        ("453.76", "300.00", "disagree"),
    ],
)
def test_invalid_latency_output_is_refused(old: str, new: str, problem: str) -> None:
    assert old in LAT
    with pytest.raises(CellError, match=problem):
        parse(job("write_lat", 64, 20), LAT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("0.003276", "0.004276", "disagree"),
        ("0.003276", "nan", "MsgRate is nan"),
        ("0.003276", "0,003276", "MsgRate is not a number"),
        (" 0.20 ", " inf ", "BW average is inf"),
        (" 0.20 ", " -nan ", "BW average is nan"),
        ("0.003276", "", "no complete line"),
    ],
)
def test_invalid_bandwidth_output_is_refused(old: str, new: str, problem: str) -> None:
    assert old in BW
    with pytest.raises(CellError, match=problem):
        parse(job("send_bw", 64, 1000), BW.replace(old, new, 1))


UTIL = (HERE / f"perftest-{VERSION}-write_bw-65536-cpu_util.txt").read_text()


def test_perftests_cpu_utilization() -> None:
    """A test with a duration counts the messages itself."""
    asked = replace(job("write_bw", 65536, 1000), cpu_util=True, seconds=3)
    assert {"-D", "3", "--cpu_util"} <= set(client(asked)) & set(server(asked))
    assert "-n" not in client(asked)
    measurement = parse(asked, UTIL)
    assert (measurement.messages, measurement.payload_bytes) == (487, 487 * 65536)
    assert figures(measurement)["cpu.utilization"] == ("proc_stat", 1.0, "1")
    # resolution of MiB/s compared with that of messages
    assert figures(measurement)["bandwidth"][1] == pytest.approx(10.10 * 2**20)
    with pytest.raises(CellError, match="no complete line"):
        parse(job("write_bw", 65536, 487), UTIL)


def test_perftest_sleeps_until_a_completion() -> None:
    polls = job("send_lat", 64, 1000)
    asked = replace(polls, events=True)
    for end in (client, server):
        assert set(end(asked)) - set(end(polls)) == {"-e"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("100.00\n", "100.01\n", "CPU_Util is 100.01"),
        ("100.00\n", "nan\n", "CPU_Util is nan"),
        ("65536      487 ", "65536      0 ", "'0' iterations"),
        ("65536      487 ", "32768      487 ", "'32768' bytes"),
    ],
)
def test_invalid_cpu_utilization_is_refused(old: str, new: str, problem: str) -> None:
    assert old in UTIL
    with pytest.raises(CellError, match=problem):
        parse(replace(job("write_bw", 65536, 1000), cpu_util=True), UTIL.replace(old, new, 1))


def test_a_rate_of_zero_is_refused() -> None:
    zero = BW.replace("0.003276", "0.000000").replace("0.20 ", "0.00 ")
    with pytest.raises(CellError, match="bandwidth is zero"):
        parse(job("send_bw", 64, 1000), zero)


@given(st.integers(0, len(LAT) - 1))
def test_truncated_output_never_gives_other_numbers(length: int) -> None:
    whole = parse(job("write_lat", 64, 20), LAT)
    try:
        measurement = parse(job("write_lat", 64, 20), LAT[:length])
    except CellError:
        return
    assert measurement == whole


@given(st.text())
def test_any_text_is_a_measurement_or_a_cell_error(output: str) -> None:
    with pytest.raises(CellError):
        parse(job("write_lat", 64, 20), output)


def test_each_end_names_its_own_device_and_gid() -> None:
    assert client(job("write_lat", 64, 20)) == (
        *("ib_write_lat", "-F", "-d", "rxe0", "-i", "1", "-x", "3", "-p", "18600", "-n", "20"),
        *("-u", "18", "-s", "64", "-U", "10.0.0.2"),
    )
    small = replace(job("write_lat", 64, 20), path_mtu=1024)
    assert client(small)[14:16] == ("-m", "1024")
    with pytest.raises(CellError, match="its MTU is 4096, not 1024"):
        parse(small, LAT)
    classed = replace(job("write_lat", 64, 20), traffic_class=106, service_level=3)
    for command in (client(classed), server(classed)):
        assert {"--tclass=106", "--sl=3"} <= set(command)
    assert server(job("atomic_bw", 8, 20)) == (
        *("ib_atomic_bw", "-F", "-d", "rxe1", "-i", "2", "-x", "5", "-p", "18600", "-n", "20"),
        *("-u", "18"),
    )


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (" Failed status 12: wr_id 0 syndrom 0x81\n", 12),
        # from 26.01 on
        (" Failed status-transport retry counter exceeded (12): wr_id 0 syndrom 0x81\n", 12),
        (" Failed status-RNR retry counter exceeded (13)\n", 13),
        (" Failed status-\n(12)\n", None),
        (" Failed to create QP\n", None),
    ],
)
def test_the_status_of_a_failed_completion(said: str, status: int | None) -> None:
    assert completion_error(said) == status
