# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen of a capture's page: what is wrong or limits, what it costs, and what to do."""

from __future__ import annotations

from typing import Any

from rocelab.report.capture_page.wording import printable
from rocelab.report.figure import Column, Section, Table


def section(result: dict[str, Any]) -> Section:
    """Return the verdict, the most costly cause first."""
    several = len(result["input"]["files"]) > 1
    points = tuple(
        (f"{number}. {row['cause'].replace('_', ' ')}", tuple(_texts(row)))
        for number, row in enumerate(result["verdict"], 1)
    )
    rows = tuple(
        (
            str(number),
            *((printable(row["frames"][0]["file"]),) if several else ()),
            row["filter"],
        )
        for number, row in enumerate(result["verdict"], 1)
        if row["filter"]
    )
    columns = (
        Column("line", numeric=True),
        *((Column("file"),) if several else ()),
        Column("Wireshark's display filter", code=True),
    )
    tables = (Table("Frames to look at", columns, rows),) if rows else ()
    return Section("verdict", "Verdict", points=points, tables=tables, first=True)


def _texts(row: dict[str, Any]) -> list[str]:
    sure = "" if row["certainty"] == "certain" else f" ({row['certainty']})"
    texts = [printable(row["what"]) + sure]
    if row["cost"]:
        texts.append(f"Cost: {row['cost']}.")
    return [*texts, printable(row["advice"])]
