# SPDX-License-Identifier: GPL-2.0-or-later
"""File transfers: parsing what curl and rcopy print, and confining the server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import CellError, UsageError
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job
from rocelab.plans.catalog import TESTS, TRANSPORTS, counterpart

SIZE = 1_048_576
# recorded on a node: rdma-core 56.1 and curl 8.14.1 of Debian 13, run by the timing shell script
RCOPY = """opening...transferring...closing...done
1048576 bytes in 0.32 seconds = 0.03 Gb/sec
rocelab-times 1795292029.421162 1795292031.871783
"""
CURL = """curl 1048576 0.266479 0.411639 226
rocelab-times 1795292029.421162 1795292029.899000
"""


def job(tool: str, size: int = SIZE) -> Job:
    ends = End("10.44.0.1"), End("10.44.0.2")
    return Job(TESTS[tool, "put"], size, 1, 1, 14, 18515, *ends, folder="/run/x")


@pytest.mark.parametrize(
    ("tool", "text", "whole", "data", "messages"),
    [("rcopy", RCOPY, 2_450_621_000, 320_000_000, 1), ("ftp", CURL, 477_838_000, 145_160_000, 0)],
)
def test_both_tools_are_timed_by_the_same_clock(
    tool: str, text: str, whole: int, data: int, messages: int
) -> None:
    measurement = TOOLS[tool].parse(job(tool), text)
    values = {(v.metric, v.kind): v.value for v in measurement.values}
    # seconds since 1970 as a float are precise to a quarter of a microsecond
    assert values["transfer.time", "whole"] == pytest.approx(whole, abs=1000)
    assert values["transfer.time", "data"] == pytest.approx(data)
    assert values["bandwidth", "whole_file"] == pytest.approx(SIZE / whole * 1e9, rel=1e-5)
    assert (measurement.payload_bytes, measurement.messages) == (SIZE, messages)


def test_a_time_rounded_to_zero_is_absent() -> None:
    text = RCOPY.replace("in 0.32 seconds", "in 0.00 seconds")
    values = {(v.metric, v.kind) for v in TOOLS["rcopy"].parse(job("rcopy"), text).values}
    assert values == {("bandwidth", "whole_file"), ("transfer.time", "whole")}


@pytest.mark.parametrize(
    ("tool", "text", "message"),
    [
        ("rcopy", "", "does not say what it sent"),
        ("rcopy", RCOPY.replace("1048576", "1048575"), "it sent 1048575 bytes"),
        ("rcopy", RCOPY.replace("0.32", "2.47"), "its data took"),
        ("rcopy", RCOPY.replace("rocelab-times", "times"), "no times"),
        ("rcopy", RCOPY.replace("1795292031", "1795292029").replace("871", "421162", 1), "time"),
        ("ftp", "", "does not say what it sent"),
        ("ftp", CURL.replace("226", "500"), "answered 500"),
        ("ftp", CURL.replace("curl 1048576", "curl 0"), "it sent 0 bytes"),
        ("ftp", CURL.replace("0.266479", "0.466479"), "its data took"),
        ("ftp", CURL.replace("1795292029.8", "1795292028.8"), "its time is"),
    ],
)
def test_implausible_output_is_an_error(tool: str, text: str, message: str) -> None:
    with pytest.raises(CellError, match=message):
        TOOLS[tool].parse(job(tool), text)


def test_a_get_goes_the_other_way() -> None:
    """curl fetches; rcopy only sends, so the second node runs it."""
    fetched = replace(job("ftp"), test=TESTS["ftp", "get"])
    sent = replace(job("rcopy"), test=TESTS["rcopy", "get"])
    ftp, rcopy = TOOLS["ftp"].transfer, TOOLS["rcopy"].transfer
    assert ftp is not None
    assert rcopy is not None
    assert (ftp.fetches(fetched.test), ftp.swaps(fetched.test)) == (True, False)
    assert (rcopy.fetches(sent.test), rcopy.swaps(sent.test)) == (False, True)
    for each in ("ftp", "rcopy"):
        put = TOOLS[each].transfer
        assert put is not None
        assert not put.fetches(TESTS[each, "put"])
        assert not put.swaps(TESTS[each, "put"])
    assert TOOLS["ftp"].client(fetched)[-3:] == (
        *("--output", "/run/x/in/file", "ftp://10.44.0.2:18515/out/file"),
    )
    assert ftp.config is not None
    assert "write_enable=NO\nanon_upload_enable=NO\n" in ftp.config(fetched)


@given(st.sampled_from(["rcopy", "ftp"]), st.text(max_size=200), st.integers(0, 90))
def test_any_output_gives_values_or_an_error(tool: str, noise: str, cut: int) -> None:
    text = (RCOPY if tool == "rcopy" else CURL)[:cut] + noise
    try:
        measurement = TOOLS[tool].parse(job(tool), text)
    except CellError:
        return
    assert all(value.value > 0 for value in measurement.values)


def test_the_ftp_server_is_confined_to_the_data_link_and_one_folder() -> None:
    ftp = TOOLS["ftp"].transfer
    assert ftp is not None
    assert ftp.config is not None
    lines = dict(line.split("=", 1) for line in ftp.config(job("ftp")).splitlines())
    assert (lines["listen_address"], lines["listen_port"]) == ("10.44.0.2", "18515")
    assert (lines["anon_root"], lines["secure_chroot_dir"]) == ("/run/x", "/run/x/empty")
    assert (lines["local_enable"], lines["listen_ipv6"]) == ("NO", "NO")


def test_ftp_is_the_tcp_counterpart_of_rcopy() -> None:
    rcopy = TESTS["rcopy", "put"]
    assert counterpart(rcopy, TRANSPORTS["tcp"]) is TESTS["ftp", "put"]
    assert counterpart(rcopy, TRANSPORTS["ipoib"]) is TESTS["ftp", "put"]
    assert counterpart(TESTS["ftp", "put"], TRANSPORTS["rxe-v2"]) is None
    text = (
        '[plan]\nname = "p"\ntransports = ["rxe-v2"]\n'
        '[[benchmark]]\ntool = "ftp"\ntest = "put"\nsizes = [1]\n'
    )
    with pytest.raises(UsageError):
        plan_file.from_toml(text, "p.toml")
