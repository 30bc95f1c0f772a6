# SPDX-License-Identifier: GPL-2.0-or-later
"""ucx_perftest, rping, udaddy, rstream and fi_pingpong: parsers on recorded and garbled output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import CellError
from rocelab.plans.benchmarks import short_numbers
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job, Measurement, process_name
from rocelab.plans.catalog import TESTS

HERE = Path(__file__).parents[1] / "data"
VERBS = (
    End("10.0.0.1", "rxe0", 1, 3, netdev="data0"),
    End("10.0.0.2", "rxe0", 1, 5, netdev="data1"),
)
TCP = (End("10.0.0.1", netdev="data0"), End("10.0.0.2", netdev="data1"))
RECORDED = {
    ("ucx_perftest", "tag_lat", 64, 100): "ucx-1.18.1-tag_lat-64.txt",
    ("ucx_perftest", "tag_bw", 4096, 200): "ucx-1.18.1-tag_bw-4096.txt",
    ("ucx_perftest", "stream_bw", 64, 200): "ucx-1.18.1-stream_bw-64.txt",
    ("rping", "time", 64, 20): "rdma-core-56.1-rping-64.txt",
    ("udaddy", "time", 64, 20): "rdma-core-56.1-udaddy-64.txt",
    ("rstream", "latency", 64, 100): "rdma-core-56.1-rstream-latency-64.txt",
    ("rstream", "bandwidth", 1024, 1000): "rdma-core-56.1-rstream-bandwidth-1024.txt",
    ("fi_pingpong", "latency", 64, 100): "libfabric-2.1.0-fi_pingpong-64.txt",
    ("fi_pingpong", "latency", 1536, 100): "libfabric-2.1.0-fi_pingpong-1536.txt",
}
"""By tool, test, size and iterations."""
OF = {(tool, test, size): file for (tool, test, size, _), file in RECORDED.items()}


def job(
    tool: str, test: str, size: int, iterations: int = 100, ends: tuple[End, End] = VERBS
) -> Job:
    return Job(TESTS[tool, test], size, iterations, 1, 14, 5001, *ends)


def said(tool: str, test: str, size: int) -> str:
    return (HERE / OF[tool, test, size]).read_text()


def read(tool: str, test: str, size: int, iterations: int) -> Measurement:
    return TOOLS[tool].parse(job(tool, test, size, iterations), said(tool, test, size))


def figures(measurement: Measurement) -> dict[str, tuple[str, float, str]]:
    return {v.metric: (v.kind, v.value, v.unit) for v in measurement.values}


@pytest.mark.parametrize("recorded", RECORDED)
def test_what_was_recorded(recorded: tuple[str, str, int, int]) -> None:
    """Each has its value, and the least that the wire must have carried."""
    tool, test, size, iterations = recorded
    measurement = read(*recorded)
    assert measurement.values
    assert all(each.value > 0 for each in measurement.values)
    ways = 1 if tool == "ucx_perftest" and test.endswith("_bw") else 2
    assert measurement.payload_bytes >= ways * size * iterations


@pytest.mark.parametrize("recorded", [each for each in RECORDED if each[0] != "udaddy"])
def test_results_of_another_number_of_messages(recorded: tuple[str, str, int, int]) -> None:
    tool, test, size, iterations = recorded
    with pytest.raises(CellError):
        TOOLS[tool].parse(job(tool, test, size, iterations + 64), said(tool, test, size))


@pytest.mark.parametrize(
    "recorded",
    [each for each in RECORDED if each[0] in ("rstream", "fi_pingpong") or each[1] == "tag_bw"],
)
def test_results_of_another_size(recorded: tuple[str, str, int, int]) -> None:
    tool, test, size, iterations = recorded
    with pytest.raises(CellError):
        TOOLS[tool].parse(job(tool, test, 2 * size, iterations), said(tool, test, size))


@pytest.mark.parametrize("recorded", RECORDED)
def test_output_that_ends_early(recorded: tuple[str, str, int, int]) -> None:
    tool, test, size, iterations = recorded
    text = said(tool, test, size)
    for length in range(0, len(text.rstrip()), max(1, len(text) // 50)):
        with pytest.raises(CellError):
            TOOLS[tool].parse(job(tool, test, size, iterations), text[:length])


@given(data=st.data(), recorded=st.sampled_from(list(RECORDED)))
def test_garbled_output(data: st.DataObject, recorded: tuple[str, str, int, int]) -> None:
    """Is refused, or read; it never raises anything else."""
    tool, test, size, iterations = recorded
    text = said(tool, test, size)
    at = data.draw(st.integers(0, len(text) - 1))
    text = text[:at] + data.draw(st.text(max_size=3)) + text[at + 1 :]
    try:
        measurement = TOOLS[tool].parse(job(tool, test, size, iterations), text)
    except CellError:
        return
    assert all(each.value > 0 for each in measurement.values)


def test_ucx_is_told_which_transport() -> None:
    """It would take any interface that it finds; its process is not env's."""
    client = TOOLS["ucx_perftest"].client(job("ucx_perftest", "tag_lat", 64))
    assert client[:5] == (
        *("env", "UCX_TLS=rc_verbs,ud_verbs:aux", "UCX_UD_ETH_DGID_CHECK=n"),
        *("UCX_NET_DEVICES=rxe0:1", "UCX_IB_GID_INDEX=3"),
    )
    assert process_name(client) == "ucx_perftest"
    server = TOOLS["ucx_perftest"].server_argv(job("ucx_perftest", "tag_lat", 64, ends=TCP))
    assert server[:3] == ("env", "UCX_TLS=tcp", "UCX_NET_DEVICES=data1")


def test_ucx_is_told_to_use_no_mpi_where_it_would() -> None:
    """1.13 of Debian 12 is built without MPI and takes the option for a call for help."""
    with_mpi = tuple(replace(end, options=("-P",)) for end in TCP)
    for ends, is_told in ((TCP, False), (with_mpi, True)):
        asked = job("ucx_perftest", "tag_lat", 64, ends=(ends[0], ends[1]))
        argv = TOOLS["ucx_perftest"].client(asked), TOOLS["ucx_perftest"].server_argv(asked)
        assert [("-P" in words) for words in argv] == [is_told, is_told]


def test_each_transport_has_its_options() -> None:
    def words(tool: str, test: str, ends: tuple[End, End]) -> tuple[str, ...]:
        return TOOLS[tool].client(job(tool, test, 64, ends=ends))

    assert "-T" not in words("rstream", "latency", VERBS)
    assert words("rstream", "latency", TCP)[-2:] == ("-T", "s")
    assert words("fi_pingpong", "latency", VERBS)[1:5] == ("-p", "verbs", "-d", "rxe0")
    assert words("fi_pingpong", "latency", TCP)[1:5] == (
        *("FI_TCP_IFACE=data0", "fi_pingpong", "-p", "tcp"),
    )
    assert TOOLS["udaddy"].port


@pytest.mark.parametrize(
    ("number", "size", "count"),
    [
        *((64, "64", "64"), (1000, "1000", "1k"), (1024, "1k", "1k"), (1536, "1.5k", "1k")),
        *((10752, "10k", "10k"), (1 << 20, "1m", "1m"), (1 << 30, "1g", "1b")),
    ],
)
def test_shortened_numbers(number: int, size: str, count: str) -> None:
    """As examples/common.c of librdmacm and util/pingpong.c of libfabric have it."""
    assert (short_numbers.size(number), short_numbers.count(number)) == (size, count)
