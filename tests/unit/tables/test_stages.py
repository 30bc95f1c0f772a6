# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages: the words of tables/stages.csv, and the copies of it that tables/renew.py makes.

What Python, Rust and ebpf build reads the table itself; `make -C ebpf check` compares ebpf's record
with the driver's header.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import script_module
import shared_table

ROOT = Path(__file__).resolve().parents[3]
STAGES = shared_table.rows("stages")


def test_the_table_is_in_the_order_of_events() -> None:
    """Each direction's stages stand event by event: readers number them so."""
    runs = [key for key, _ in itertools.groupby(STAGES, lambda row: row["event"])]
    assert runs == ["tx_packet", "start_xmit", "rx_packet", "rx_done"]
    assert len({(row["direction"], row["stage"]) for row in STAGES}) == len(STAGES)


def test_words_of_the_table() -> None:
    """Readers know these and no others."""
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


def test_every_copy_is_what_the_table_makes() -> None:
    """Fix it with tables/renew.py."""
    script = script_module.load("tables/renew.py")
    for name, regions in script.REGIONS.items():
        text = (ROOT / name).read_text()
        assert script.renew(text, regions, STAGES) == text, name


def test_a_new_stage_reaches_every_copy() -> None:
    """A row in the table is all that these files need."""
    script = script_module.load("tables/renew.py")
    at = next(at for at, row in enumerate(STAGES) if row["stage"] == "net")
    new = {**STAGES[at], "stage": "poll", "meaning": "polls", "contains": "polling"}
    table = [*STAGES[:at], new, *STAGES[at:]]
    for name, regions in script.REGIONS.items():
        assert "poll" in script.renew((ROOT / name).read_text(), regions, table), name


def test_nothing_else_lists_the_stages() -> None:
    """A list of the stages in another file would have to be kept up by hand."""
    known = script_module.load("tables/renew.py").REGIONS
    listed = [
        path.relative_to(ROOT)
        for folder in ("docs", "ebpf", "kernel/src", "tools/wireshark", "tools/rocelab/src")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".md", ".bt", ".c", ".h", ".lua", ".py"} and path.is_file()
        if str(path.relative_to(ROOT)) not in known
        if "route net copy" in path.read_text().replace("`", "").replace(",", "")
        or "bth + route" in path.read_text()
    ]
    assert listed == []
