# SPDX-License-Identifier: GPL-2.0-or-later
"""What is to be said of captures that are easily misjudged (captures/cases.py), and no more."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import Any

import pytest

from corpus import CAPTURES
from requirements import need_program
from rocelab import capture

Found = tuple[str, str, bool, int]
"""Rule, severity, ambiguous, how often."""


@dataclass
class Expected:
    """The whole answer to a case."""

    findings: list[Found] = field(default_factory=list)
    says: str = ""
    """A part of the last finding's text."""
    conditions: list[str] = field(default_factory=list)
    connections: int = 1
    directions: dict[str, dict[str, int]] = field(default_factory=dict)
    """Counts of the first connection's sides."""
    go_back_n: bool = False


LOSS_BEFORE = ("loss", "warning", False, 1)
UNDECIDED_LOSS = ("loss", "warning", True, 1)
NOTHING = {"retransmitted": 0, "missing": 0, "duplicates": 0, "out_of_order": 0}

CASES = {
    "gbn-selective": Expected(
        [LOSS_BEFORE, UNDECIDED_LOSS],
        "lost before the capture point, or after it if",
        go_back_n=True,
    ),
    "selective-repeat": Expected(
        [LOSS_BEFORE, ("selective-repeat", "error", False, 1)], "only PSNs 11 to 11", go_back_n=True
    ),
    "snap64-read": Expected(
        conditions=["snapped_reads"], directions={"a": NOTHING, "b": {"missing": 0}}
    ),
    "read-response-lost-before": Expected(
        [LOSS_BEFORE], "PSN 1002 was not captured", directions={"b": {"missing": 1}}
    ),
    "read-response-lost-behind": Expected(
        [UNDECIDED_LOSS], "lost after the capture point, or late", directions={"b": {"missing": 0}}
    ),
    "reads-unanswered": Expected(
        [LOSS_BEFORE], "PSN 1000 was not captured", directions={"b": {"missing": 2}}
    ),
    "adaptive-routing": Expected(
        [("reorder", "warning", False, 48)],
        "by up to 2 PSNs and 700 ns",
        directions={"a": NOTHING | {"out_of_order": 48, "reorder_depth": 2}},
    ),
    "mirrored": Expected(conditions=["mirrored"], directions={"a": NOTHING, "b": NOTHING}),
    "unsorted": Expected(conditions=["unsorted"], directions={"a": NOTHING}),
    "sampled": Expected(conditions=["sampled"]),
    "vlan-overlap": Expected(connections=2, directions={"a": NOTHING}),
    "qpn-reuse-near": Expected(
        [("qpn-reuse", "note", True, 1)], "MSN 1 restarts", directions={"a": NOTHING}
    ),
    "source-port-spray": Expected([("udp-source-port", "note", False, 58)], "changed 58 times"),
    "reserved-bit": Expected([("bth-reserved", "note", False, 20)], "20 packet(s)", connections=5),
    "mid-traffic": Expected(conditions=["mid_traffic"]),
    "other-port": Expected(conditions=["other_port"], connections=0),
    "tunnels": Expected(connections=20),
    "fabrics": Expected(connections=32),
}


def analyze(*names: str, **options: Any) -> dict[str, Any]:
    paths = [str(CAPTURES / f"case-{name}.pcap") for name in names]
    return capture.analyze(paths, capture.Options(**options)).result


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    expected = CASES[name]
    result = analyze(name, go_back_n=expected.go_back_n)
    rows = result["findings"]
    findings = [(row["rule"], row["severity"], row["ambiguous"], row["count"]) for row in rows]
    assert findings == expected.findings
    assert expected.says in (rows[-1]["detail"] if rows else "")
    assert [row["kind"] for row in result["conditions"]] == expected.conditions
    assert len(result["connections"]) == expected.connections
    for row in result["connections"]:
        assert len(row["directions"]) == 2 or name == "sampled"
    for side, counts in expected.directions.items():
        row = next(r for r in result["connections"][0]["directions"] if r["from"] == side)
        assert {key: row[key] for key in counts} == counts
    assert result["icrc"]["bad"] == 0


def test_every_case_is_expected() -> None:
    names = {path.name[5:-5] for path in CAPTURES.glob("case-*.pcap")}
    assert names == {*CASES, "skew-requests", "skew-responses"}


def test_clocks_of_two_taps_are_aligned() -> None:
    """The second clock lags by 3 µs, and a response takes 2 µs: 1 µs is proven."""
    result = analyze("skew-requests", "skew-responses")
    assert result["findings"] == []
    assert [row["kind"] for row in result["conditions"]] == ["clock_offset"]
    assert result["clock_offsets_ns"] == [0, 1001]
    (connection,) = result["connections"]
    latency = connection["directions"][0]["latency_ns"]
    assert latency["count"] == 20


def test_captures_of_different_times_are_named() -> None:
    early = str(CAPTURES / "case-vlan-overlap.pcap")
    late = str(CAPTURES / "testbed-write-lat-64.pcap")
    kinds = [row["kind"] for row in capture.analyze([early, late]).result["conditions"]]
    assert kinds[0] == "disjoint"


def test_the_hinted_port_is_analysed() -> None:
    result = analyze("other-port", ports=[14791])
    assert (result["roce"]["packets"], result["conditions"]) == (10, [])


TUNNELS = {
    "vxlan": "vxlan.vni", "geneve": "geneve.vni", "gre": "gre.key", "nvgre": "gre.key",
    "mpls": "mpls.label", "pppoe": "pppoe.session_id",
}  # fmt: skip


def test_tunnels_are_tsharks() -> None:
    """Kind, number and outer addresses of each tunnel."""
    need_program("tshark")
    path = CAPTURES / "case-tunnels.pcap"
    fields = ["ip.src", "ip.dst", "frame.protocols", *sorted(set(TUNNELS.values()))]
    argv = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=a"]
    argv += [word for name in fields for word in ("-e", name)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    frames = [dict(zip(fields, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]
    rows = capture.analyze([str(path)]).result["connections"]
    assert len(rows) * 2 == len(frames)
    for row, frame in zip(rows, frames[::2], strict=True):
        tunnel = row["tunnel"]
        assert "infiniband" in frame["frame.protocols"]
        if tunnel["from"] is not None:
            assert tunnel["from"] == frame["ip.src"].split(",")[0]
            assert tunnel["to"] == frame["ip.dst"].split(",")[0]
        number = frame[TUNNELS[tunnel["kind"]]] if tunnel["kind"] in TUNNELS else ""
        if number:
            value = int(number.split(",")[-1], 0)
            assert tunnel["id"] == (value >> 8 if tunnel["kind"] == "nvgre" else value)
