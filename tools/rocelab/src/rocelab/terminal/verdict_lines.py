# SPDX-License-Identifier: GPL-2.0-or-later
"""Print the verdict on a capture: what is wrong or limits, what it costs, and what to do."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from rocelab.terminal import grid
from rocelab.terminal.printable import printable

_STYLE = {"failure": "bold red", "fault": "bold yellow", "limit": "bold", "capture": "bold"}


def verdict(result: dict[str, Any], columns: int) -> RenderableType:
    """The lines of the verdict, the most costly first."""
    several = len(result["input"]["files"]) > 1
    lines: list[RenderableType] = []
    for number, row in enumerate(result["verdict"], 1):
        lines += _line(f"{number}. ", row, columns, several=several)
    return Group(*lines)


def _line(mark: str, row: dict[str, Any], columns: int, *, several: bool) -> list[RenderableType]:
    sure = "" if row["certainty"] == "certain" else f" ({row['certainty']})"
    parts = [(printable(row["what"]) + sure, _STYLE[row["kind"]])]
    if row["cost"]:
        parts.append((f"Cost: {row['cost']}.", ""))
    if row["kind"] != "limit" or mark == "1. ":
        parts.append((printable(row["advice"]), ""))
    if row["filter"]:
        file = f" in {printable(row['frames'][0]['file'])}" if several else ""
        parts.append((f"Frames{file}: {row['filter']}", "dim"))
    lines: list[RenderableType] = []
    for text, style in parts:
        indent = mark if not lines else " " * len(mark)
        body = grid.paragraph(text, columns - len(mark)).plain.split("\n")
        for at, line in enumerate(body):
            lines.append(Text((indent if at == 0 else " " * len(mark)) + line, style=style))
    return lines
