# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults by tc(8): a plan, and the proof that tc, capture and both drivers agree on each packet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from pcapng_file import read_pcapng
from rocelab import capture
from rocelab.directory import Directory
from rocelab.record import faults_document
from rocelab.record.faults_document import Event
from rocelab.testbed.node import Node

PLAN = """
[plan]
name = "counted"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat", "rxedump"]
[testbed]
provider = "{provider}"
[testbed.faults]
lost = {{ action = "drop", every_packets = 150 }}
wrong = {{ action = "corrupt", every_packets = 110, bit = 1000 }}
late = {{ action = "delay", every_packets = 130, duration_us = 20000 }}
marked = {{ action = "mark_ce", every_packets = 70 }}
killed = {{ action = "kill", at_us = 1000 }}
stopped = {{ action = "stop", at_us = 1, duration_us = 300000 }}
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
sizes = [16384]
iterations = 40
path_mtu = 1024
qp_timeout = 18
timeout = 600
faults = ["lost", "wrong", "late", "marked"]
"""
KILLED = """
[[benchmark]]
tool = "perftest"
test = "read_lat"
events = true
label = "killed"
sizes = [64]
iterations = 20000
qp_timeout = 18
timeout = 600
retry_count = 3
faults = ["killed"]
"""
STOPPED = """
[[benchmark]]
tool = "perftest"
test = "send_lat"
events = true
label = "stopped"
sizes = [64]
iterations = 4000
qp_timeout = 18
timeout = 600
faults = ["stopped"]
"""
_STOPPED_NS = 300_000_000
EVERY = {"lost": 150, "wrong": 110, "late": 130, "marked": 70}
_LEFT = "tc qdisc show; ip -o link show | grep rocelab-f; pgrep -x tc"


def step_of(run: Path, title: str) -> tuple[dict[str, Any], Path]:
    """Return what cell.json says of a benchmark's step, and its folder; the cell must be ok."""
    (path,) = run.glob(f"cells/perftest-{title}.*/cell.json")
    cell = json.loads(path.read_text())
    # the interfaces' counters say where a frame went that a proof misses
    moved = [each["counters"] for each in cell["steps"]]
    assert cell["status"] == "ok", (cell["error"], moved)
    (step,) = cell["steps"]
    return step, path.parent / str(step["size"])


def leftovers(node: Node) -> str:
    """What faults could leave on a node."""
    return node.run(("sh", "-c", _LEFT), check=False).stdout


def check_packets(run: Path, client: Node, server: Node) -> None:
    """Each packet that a fault met is in tc's counts, the capture and both drivers' records."""
    step, folder = step_of(run, "send_bw")
    faults = step["faults"]
    with Directory.open(folder) as opened:
        events = faults_document.read(opened)
    counted = faults["tc"]["faults"]
    assert faults["never_met"] == []
    for name, every in EVERY.items():
        met = [each for each in events if each.fault == name]
        assert len(met) == counted[name]["met"] == counted[name]["seen"] // every > 0, counted
    assert all(each["found"] for each in faults["mended"])
    wire, sent, came = (
        _packets(folder / name)
        for name in ("wire.pcap", f"{client.name}.pcapng", f"{server.name}.pcapng")
    )
    sent = sent.filter(pl.col("comment").str.contains(" dir=tx "))
    # where one machine is both ends, direction and address distinguish their records
    came = came.filter(pl.col("comment").str.contains(" dir=rx "))
    bad = came.filter(pl.col("comment").str.contains(" drop=icrc"))
    good = came.filter(~pl.col("comment").str.contains(" drop=icrc"))
    requests = [
        each.filter(pl.col("src") == client.link.ipv4, pl.col("opcode") < 0x0D)
        for each in (wire, sent, good, bad)
    ]
    # by fq_codel, if the host let them wait
    dropped = step["counters"][client.name].get("link", {}).get("dropped", 0)
    unrecorded = 0
    for psn in {each.psn for each in events}:
        on_wire, by_client, by_server, spoilt = (
            each.filter(pl.col("psn") == psn).height for each in requests
        )
        lost, wrong = (_times(events, name, psn) for name in ("lost", "wrong"))
        place = f"{psn}: {[each for each in events if each.psn == psn]}"
        assert by_client - dropped <= on_wire <= by_client, place
        assert on_wire >= 1, place
        assert by_server == on_wire - lost - wrong, place
        assert spoilt <= wrong, place
        unrecorded += wrong - spoilt
    assert requests[1].height - requests[0].height <= dropped
    # rxedump misses a drop that interrupts its record of another one, and says so
    recorded = read_pcapng(folder / f"{server.name}.pcapng")
    assert unrecorded == recorded.counters()["lost_nested"]
    # nothing else was lost, and the capture shows what the client sent: no CE, no wrong ICRC
    assert requests[0].height == faults["tc"]["requests"]
    assert requests[0]["icrc_ok"].all()
    marks = requests[2].filter(pl.col("ecn") == 3)
    assert sorted(marks["psn"]) == sorted(
        each.psn for each in events if each.fault == "marked" and each.psn is not None
    )
    assert faults["causes"].get("after_nak", 0) > 0, faults
    assert faults["sent_again"]["client"] > 0
    late = [each["recovered_ns"] for each in faults["mended"] if each["fault"] == "late"]
    assert all(each is not None and each > 0 for each in late), faults


def check_kill(run: Path, client: Node) -> None:
    """The client tries four times; capture, its driver and the application agree on the end."""
    step, _ = step_of(run, "read_lat-killed")
    faults = step["faults"]
    (kill,) = faults["mended"]
    tried, ended = faults["unanswered"], faults["ended"]
    assert (kill["done"], kill["found"], kill["recovered_ns"]) == ("kill", True, None)
    assert (tried["psn"], tried["tries"]) == (kill["psn"], 4)
    assert ended["completion_status"] == 12
    assert faults["driver"][client.name]["retry_exceeded_err"] == 1
    assert ended["gave_up_ns"] > 4 * 4096 * 2**18


def check_stop(run: Path, server: Node) -> None:
    """It sends nothing for so long, while its driver acknowledges; nothing is lost."""
    step, folder = step_of(run, "send_lat-stopped")
    assert step["faults"]["never_met"] == []
    wire = _packets(folder / "wire.pcap")
    sent = wire.filter(pl.col("src") == server.link.ipv4, pl.col("opcode") < 0x0D)
    longest = sent["time_ns"].diff().max()
    assert isinstance(longest, int)
    assert longest >= _STOPPED_NS


def _packets(path: Path) -> pl.DataFrame:
    return pl.DataFrame(capture.read(str(path)).packets)


def _times(events: tuple[Event, ...], fault: str, psn: int | None) -> int:
    return sum(each.fault == fault and each.psn == psn for each in events)
