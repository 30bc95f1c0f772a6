# SPDX-License-Identifier: GPL-2.0-or-later
"""Native InfiniBand and ERF: ends, times, lengths; tshark and the corpus have the other fields."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from corpus import CAPTURES, files
from requirements import need_program
from rocelab import capture
from rocelab.capture.select import parse_filter
from rocelab.errors import UsageError

ERF = CAPTURES / "infiniband-erf.pcap"
PLAIN = CAPTURES / "infiniband.pcap"


def analyze(path: Path, **options: Any) -> dict[str, Any]:
    return capture.analyze([str(path)], capture.Options(**options)).result


def test_ends_are_lids_or_gids() -> None:
    local, by_gid, ethernet = (row for row in analyze(ERF)["connections"] if row["service"] == "RC")
    assert [local[end]["address"] for end in "ab"] == ["lid:17", "lid:18"]
    assert (local["net"], local["lids"], local["certainty"]) == ("infiniband", None, "certain")
    assert [by_gid[end]["address"] for end in "ab"] == ["fe80::1", "fe80::2"]
    assert by_gid["lids"] == ["lid:17", "lid:18"]
    assert (ethernet["net"], ethernet["lids"]) == ("v2_ipv4", None)


@pytest.mark.parametrize(
    ("terms", "packets"), [("addr=lid:17", 12), ("addr=lid:99", 0), ("addr=fe80::/10", 11)]
)
def test_filter(terms: str, packets: int) -> None:
    assert analyze(ERF, select=parse_filter(terms))["roce"]["packets"] == packets


@pytest.mark.parametrize("lid", ["", "x", "65536", "-1"])
def test_a_wrong_lid(lid: str) -> None:
    with pytest.raises(UsageError):
        parse_filter(f"addr=lid:{lid}")


def test_bytes_add_up_and_have_no_preamble() -> None:
    """LRH, GRH, BTH and the VCRC of 11 packets; Ethernet's extra bytes are not InfiniBand's."""
    plain, with_l1 = (analyze(PLAIN, l1=l1)["overhead"] for l1 in (False, True))
    headers = plain["by_header"]
    assert (headers["lrh"], headers["bth"], headers["trailer"]) == (88, 132, 22)
    assert "grh" not in headers
    assert plain["payload_bytes"] + sum(headers.values()) == plain["wire_bytes"]
    assert with_l1["wire_bytes"] == plain["wire_bytes"]
    assert with_l1["by_message_size"] == plain["by_message_size"]
    erf = analyze(ERF)["overhead"]
    assert erf["by_header"]["grh"] == 11 * 40
    assert erf["preamble_fcs_gap_bytes"] == 2 * 24


def test_erf_in_pcapng(tmp_path: Path) -> None:
    need_program("editcap")
    converted = tmp_path / "erf.pcapng"
    subprocess.run(["editcap", "-F", "pcapng", str(ERF), str(converted)], check=True, timeout=60)
    one, other = (analyze(path) for path in (ERF, converted))
    for key in ("roce", "opcodes", "overhead", "connections"):
        assert other[key] == one[key], key


def test_times_are_those_of_erf() -> None:
    """The pcap has microseconds only, and ERF 2^-32 s: Wireshark takes these, too."""
    need_program("tshark")
    argv = ["tshark", "-n", "-r", str(ERF), "-T", "fields", "-e", "frame.time_epoch"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    times = [int(line.replace(".", "")) for line in done.stdout.split()]
    table = pl.DataFrame(capture.read(ERF).packets)
    assert table["time_ns"].to_list() == pytest.approx(times, abs=1)


def test_records_that_end_early(tmp_path: Path) -> None:
    """Within the ERF header nothing is told; behind it the packet is cut or snapped."""
    whole = records(ERF)[0]
    counts = {}
    for length in (0, 15, 16, 24, 35, 36, len(whole)):
        path = tmp_path / f"{length}.pcap"
        path.write_bytes(files.pcap([(10**18, whole[:length])], link=197))
        result = analyze(path)
        counts[length] = (result["roce"]["packets"], result["input"]["cut_headers"])
    assert counts == {
        0: (0, 0), 15: (0, 0), 16: (0, 0), 24: (0, 1), 35: (0, 1), 36: (1, 0), len(whole): (1, 0)
    }  # fmt: skip


def records(capture: Path) -> list[bytes]:
    """The ERF records of a pcap."""
    data, at, frames = capture.read_bytes(), 24, []
    while at < len(data):
        length = int.from_bytes(data[at + 8 : at + 12], "little")
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def test_a_file_of_records_without_a_header(tmp_path: Path) -> None:
    """As dagsnap writes it, with what its cards fill up with; numbers are Wireshark's."""
    pad = records(ERF)[0][:8] + bytes([48, 0, 0, 24]) + bytes(12)
    path = tmp_path / "dag.erf"
    path.write_bytes(pad.join(records(ERF)))
    result, expected = (json.dumps(analyze(each)) for each in (path, ERF))
    assert result == expected.replace(str(ERF), str(path))
    need_program("tshark")
    shown = subprocess.run(
        ["tshark", "-r", path, "-T", "fields", "-e", "frame.number", "-e", "infiniband.bth.psn"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    ours = capture.read(path)
    rows = pl.DataFrame(ours.packets).select("packet", "psn").rows()
    theirs = [
        tuple(map(int, line.split())) for line in shown.splitlines() if len(line.split()) == 2
    ]
    assert rows == theirs


def test_a_cut_file_of_records(tmp_path: Path) -> None:
    path = tmp_path / "cut.erf"
    path.write_bytes(b"".join(records(ERF))[:-5])
    (error,) = analyze(path)["input"]["errors"]
    assert "ends within a record" in error["error"]
