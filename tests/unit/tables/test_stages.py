# SPDX-License-Identifier: GPL-2.0-or-later
"""Every copy of the stages that is not generated from tables/stages.csv equals it.

What ebpf builds is generated; `make -C ebpf check` compares it with the driver's header.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import shared_table

ROOT = Path(__file__).resolve().parents[3]
STAGES = shared_table.rows("stages")
DRIVER_EVENTS = {"tx_packet": "TX", "rx_packet": "RX", "rx_done": "DONE"}
each_event = pytest.mark.parametrize("event", DRIVER_EVENTS)


def names(**chosen: str) -> list[str]:
    """The stages whose columns have these values, in order."""
    return [row["stage"] for row in STAGES if all(row[key] == chosen[key] for key in chosen)]


def section(page: str, heading: str) -> str:
    """Return the text under a heading of the second level."""
    return (ROOT / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_table_is_in_the_order_of_events() -> None:
    """Each direction lists its stages event by event, because readers number them so."""
    runs = [key for key, _ in itertools.groupby(STAGES, lambda row: row["event"])]
    assert runs == ["tx_packet", "start_xmit", "rx_packet", "rx_done"]
    assert len({(row["direction"], row["stage"]) for row in STAGES}) == len(STAGES)


def test_words_of_the_table() -> None:
    """Readers know exactly these stages."""
    known = {
        "direction": {"tx", "rx"},
        "capsule": {"encapsulation", "decapsulation", "none"},
        "subject": {"packet", "wait", "answer"},
        "passed": {"all", "requests", "some", "observed"},
        "stock": {"yes", "no"},
        "class": {"header", "memory", "bookkeeping", "handover", "wait"},
    }
    for column, words in known.items():
        assert {row[column] for row in STAGES} <= words, column
    assert {row["capsule"] for row in STAGES if row["direction"] == "tx"} <= {
        "encapsulation",
        "none",
    }


@each_event
def test_the_drivers_record(event: str) -> None:
    """The enum numbers the stages of a record."""
    header = (ROOT / "kernel/src/rxe_record.h").read_text()
    prefix = DRIVER_EVENTS[event]
    enum = re.search(rf"enum rxe_{prefix.lower()}_stage {{(.*?)}};", header, re.DOTALL)
    assert enum
    listed = re.findall(rf"RXE_{prefix}_(\w+)", enum[1])
    assert [word.lower() for word in listed] == [*names(event=event), "stages"]


@each_event
def test_the_drivers_trace_event(event: str) -> None:
    """The event's fields, assignments and print format agree."""
    header = (ROOT / "kernel/src/rxe_trace.h").read_text()
    body = header.split(f"TRACE_EVENT_FN(rxe_{event},")[1].split("\n);")[0]
    expected = names(event=event)
    prefix = DRIVER_EVENTS[event]
    assert re.findall(r"__field\(u32,\s*(\w+)_ns\)", body) == expected
    assert re.findall(rf"__entry->(\w+)_ns = rec->stage\[RXE_{prefix}_(\w+)\];", body) == [
        (name, name.upper()) for name in expected
    ]
    printed = body.split("TP_printk(")[1]
    assert re.findall(r"(\w+)_ns=%u", printed) == expected
    assert re.findall(r"__entry->(\w+)_ns", printed) == expected


@each_event
def test_the_page_of_events(event: str) -> None:
    """docs/events.md has a row for each stage, in order."""
    table = section("docs/events.md", f"rxe_{event}").split("\n| stage |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == names(event=event)


def test_the_manual_page() -> None:
    """rxestat(8) has a table for each direction."""
    page = (ROOT / "docs/man/rxestat.8.md").read_text()
    tables = re.findall(r"^\| stage \|.*\n\|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    listed = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in tables]
    assert listed == [names(direction="tx"), names(direction="rx")]
    for capsule in ("encapsulation", "decapsulation"):
        assert f"**{capsule}** is {' + '.join(names(capsule=capsule))}" in page


def test_the_script_of_latencies() -> None:
    """rxelat.bt is self-contained: it has every stage, in the order of a packet's path."""
    script = (ROOT / "ebpf/scripts/rxelat.bt").read_text()
    for direction in ("tx", "rx"):
        numbered = re.findall(rf'@ns\["{direction} (\d+) (\w+)"\]', script)
        expected = enumerate(names(direction=direction), start=1)
        assert numbered == [(str(number), name) for number, name in expected]
    for event in DRIVER_EVENTS:
        body = script.split(f"tracepoint:rxe:rxe_{event}\n")[1].split("\n}\n")[0]
        assert re.findall(r"= hist\(args\.(\w+)_ns\)", body) == names(event=event)
        # a stage that only some packets pass is counted conditionally
        assert re.findall(r"\tif \(args\.(\w+)_ns\) {", body) == names(event=event, passed="some")
        requests = re.findall(r"if \(args\.role == 0\) {\s+@ns\[\"\w+ \d+ (\w+)\"", body)
        assert requests == names(event=event, passed="requests")


def test_the_plugin_of_wireshark() -> None:
    """rocelab.lua is self-contained: it has each name once, and the two sums."""
    plugin = (ROOT / "tools/wireshark/rocelab.lua").read_text()
    listed = re.search(r"^local STAGES = {(.*?)^}", plugin, re.DOTALL | re.MULTILINE)
    assert listed
    assert re.findall(r'{ "(\w+)", "', listed[1]) == list(dict.fromkeys(names()))
    for capsule in ("encapsulation", "decapsulation"):
        summed = re.search(rf"^local {capsule.upper()} = {{(.*)}}$", plugin, re.MULTILINE)
        assert summed
        assert re.findall(r'"(\w+)"', summed[1]) == names(capsule=capsule)
        assert f'nil, nil, "{" + ".join(names(capsule=capsule))}")' in plugin
