# SPDX-License-Identifier: GPL-2.0-or-later
"""Every copy of the driver's drop reasons agrees with tables/drop_reasons.csv.

ebpf's is generated; `make -C ebpf check` compares it with the driver's header.
"""

from __future__ import annotations

import re
from pathlib import Path

import shared_table

ROOT = Path(__file__).parents[3]
REASONS = shared_table.rows("drop_reasons")
NAMES = [row["name"] for row in REASONS]


def test_the_driver_numbers_them_in_this_order() -> None:
    """`enum rxe_drop_reason` and the names in the event's print format."""
    header = (ROOT / "kernel/src/rxe_values.h").read_text()
    listed = header.split("#define RXE_DROP_REASONS")[1].split("enum rxe_drop_reason")[0]
    entries = re.findall(r'EML?\(RXE_DROP_(\w+),\s*"(\w+)"\)', listed)
    assert [name for _, name in entries] == NAMES
    assert [identifier.lower() for identifier, _ in entries] == NAMES


def test_the_script_names_every_reason() -> None:
    """rxedrops.bt is self-contained, so it has its own list; 0 means no reason."""
    script = (ROOT / "ebpf/scripts/rxedrops.bt").read_text()
    numbered = dict(re.findall(r'@reason\[(\d+)\] = "(\w+)"', script))
    assert numbered == {str(i): name for i, name in enumerate(NAMES) if i}


def test_the_page_explains_every_reason() -> None:
    """docs/events.md has a row for each reason, with the places where the driver drops for it."""
    page = (ROOT / "docs/events.md").read_text().split("\n## rxe_drop\n")[1].split("\n## ")[0]
    places: dict[str, set[str]] = {}
    for names, place in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (\w+) \| ", page, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            places.setdefault(name, set()).add(place)
    assert places == {row["name"]: set(row["place"].split(" or ")) for row in REASONS[1:]}
