# SPDX-License-Identifier: GPL-2.0-or-later
"""qperf and iperf3: parsers on recorded and on garbled output."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import CellError
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job, Measurement
from rocelab.plans.catalog import TESTS

HERE = Path(__file__).parents[1] / "data"
LAT = (HERE / "qperf-0.4.11-tcp_lat-64.txt").read_text()
BW = (HERE / "qperf-0.4.11-tcp_bw-4096.txt").read_text()
VERBOSE = (HERE / "qperf-0.4.11-tcp_bw-65536-verbose.txt").read_text()
IPERF = (HERE / "iperf3-3.18-tcp_bw-4096.json").read_text()


def job(tool: str, test: str, size: int) -> Job:
    return Job(TESTS[tool, test], size, 1000, 1, 14, 5001, End("10.0.0.1"), End("10.0.0.2"))


def read(tool: str, test: str, size: int, text: str) -> Measurement:
    return TOOLS[tool].parse(job(tool, test, size), text)


def figures(measurement: Measurement) -> dict[str, tuple[str, float, str]]:
    return {v.metric: (v.kind, v.value, v.unit) for v in measurement.values}


def test_qperf_latency() -> None:
    measurement = read("qperf", "tcp_lat", 64, LAT)
    assert figures(measurement) == {"latency.mean": ("one_way_half_rtt", 8778.32106, "ns")}
    assert measurement.payload_bytes == 3645376 * 2
    assert measurement.sent == 56959 + 56959


def test_qperf_bandwidth() -> None:
    measurement = read("qperf", "tcp_bw", 4096, BW)
    assert figures(measurement) == {
        "bandwidth": ("one_way", 1438253056, "bytes/s"),
        "message_rate": ("one_way", 1438253056 / 4096, "1/s"),
    }
    assert measurement.payload_bytes == 1438253056


def test_qperf_on_a_busy_node() -> None:
    """qperf's msg_rate uses the sender's time and therefore differs by 2 % from its bandwidth."""
    busy = (HERE / "qperf-0.4.11-tcp_bw-64-busy.txt").read_text()
    values = figures(read("qperf", "tcp_bw", 64, busy))
    assert values["bandwidth"] == ("one_way", 6493490.2, "bytes/s")
    assert values["message_rate"][1] == pytest.approx(6493490.2 / 64)


def test_qperf_output_with_mixed_units_gives_the_same_values() -> None:
    """Scaled units, grouped digits and bits: -vv -ub -e 9 and no -uu."""
    measurement = read("qperf", "tcp_bw", 65536, VERBOSE)
    assert figures(measurement)["bandwidth"][1] == pytest.approx(11.1542272e9 / 8)
    assert measurement.payload_bytes == 1394278400


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("tcp_lat:", "tcp_bat:", "no results"),
        ("8778.32106 ns", "8778.32106 fortnights", "unknown unit"),
        ("8778.32106 ns", "nan ns", "not a number"),
        ("8778.32106 ns", "8778,32106 ns", "not a number"),
        ("8778.32106 ns", "-1 ns", "not a number"),
        ("8778.32106 ns", "0 ns", "latency is zero"),
        ("56958", "", "no loc_recv_msgs"),
        ("8778.32106 ns", "5778.32106 ns", "does not fit"),
        ("64 bytes", "128 bytes", "128 bytes"),
        ("    latency         =  8778.32106 ns\n", "", "no latency"),
    ],
)
def test_invalid_qperf_output_is_refused(old: str, new: str, problem: str) -> None:
    assert old in LAT
    with pytest.raises(CellError, match=problem):
        read("qperf", "tcp_lat", 64, LAT.replace(old, new))


def test_qperf_without_a_server() -> None:
    text = (HERE / "qperf-0.4.11-refused.txt").read_text()
    with pytest.raises(CellError):
        read("qperf", "tcp_lat", 64, text)


@given(st.integers(0, len(LAT) - 1))
def test_truncated_qperf_never_gives_a_wrong_number(length: int) -> None:
    try:
        measurement = read("qperf", "tcp_lat", 64, LAT[:length])
    except CellError:
        return
    assert figures(measurement)["latency.mean"][1] == 8778.32106


def test_iperf3_bandwidth_is_the_receivers() -> None:
    measurement = read("iperf3", "tcp_bw", 4096, IPERF)
    received = json.loads(IPERF)["end"]["sum_received"]
    assert figures(measurement) == {
        "bandwidth": ("one_way", received["bytes"] / received["seconds"], "bytes/s")
    }
    assert measurement.payload_bytes == received["bytes"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (IPERF[: len(IPERF) // 2], "not JSON"),
        (IPERF.replace('"blksize":\t4096', '"blksize":\t8192'), "results are for 8192"),
        (IPERF.replace("sum_received", "sum_deceived"), "no end.sum_received.bytes"),
        ((HERE / "iperf3-3.18-refused.json").read_text(), "unable to connect"),
        ("[]", "no start"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_invalid_iperf3_output_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CellError, match=problem):
        read("iperf3", "tcp_bw", 4096, text)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-3", "0", '"x"', "null", "[]"])
def test_iperf3_values_that_are_not_numbers(value: str) -> None:
    document = json.loads(IPERF)
    document["end"]["sum_received"]["seconds"] = "HERE"
    with pytest.raises(CellError, match="seconds is"):
        read("iperf3", "tcp_bw", 4096, json.dumps(document).replace('"HERE"', value))


def test_iperf3_by_count() -> None:
    """It sends that many blocks, in no other second before them, and says that it did."""
    sent = json.loads(IPERF)["end"]["sum_sent"]["bytes"] // 4096
    counted = dataclasses.replace(job("iperf3", "tcp_bw", 4096), by_count=True, iterations=sent)
    argv = TOOLS["iperf3"].client(counted)
    assert argv[argv.index("--blockcount") + 1] == str(sent)
    assert not {"--time", "--omit"} & set(argv)
    measurement = TOOLS["iperf3"].parse(counted, IPERF)
    assert (measurement.sent, measurement.values) == (sent, ())
    assert read("iperf3", "tcp_bw", 4096, IPERF).sent == 0
    more = dataclasses.replace(counted, iterations=sent + 1)
    with pytest.raises(CellError, match=f"sent {sent} messages of {sent + 1}"):
        TOOLS["iperf3"].parse(more, IPERF)


def test_commands_are_lists_that_name_the_size() -> None:
    for tool, test in (("qperf", "tcp_lat"), ("iperf3", "tcp_bw")):
        argv = TOOLS[tool].client(job(tool, test, 4096))
        assert "4096" in argv
        assert "10.0.0.2" in argv
        assert "5001" in TOOLS[tool].server(job(tool, test, 4096))
