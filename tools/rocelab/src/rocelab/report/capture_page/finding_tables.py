# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings by rule, with a display filter for Wireshark."""

from __future__ import annotations

from typing import Any

from rocelab import units
from rocelab.report.capture_page.wording import frame_filter, printable
from rocelab.report.figure import Column, Note, Section, Table

_SEVERITIES = ("error", "warning", "note")
_MAX_ROWS = 200


def section(result: dict[str, Any]) -> Section:
    """Return a row for each rule and file, errors first."""
    if not result["findings_total"]:
        return Section("findings", "Findings", notes=(Note("There are none."),))
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in result["findings"]:
        groups.setdefault((row["severity"], row["rule"], row["file"]), []).append(row)
    ordered = sorted(groups.items(), key=lambda item: (_SEVERITIES.index(item[0][0]), item[0]))
    several = len(result["input"]["files"]) > 1
    rows = [
        (
            severity,
            rule + (f" in {printable(file)}" if several else ""),
            units.integer(sum(row["count"] for row in some)),
            ("(ambiguous) " if some[0]["ambiguous"] else "") + printable(some[0]["detail"]),
            frame_filter(row["packet"] for row in some if row["packet"]),
        )
        for (severity, rule, file), some in ordered
    ]
    listed = sum(row["count"] for row in result["findings"])
    left = result["findings_total"] - listed
    notes = [
        Note(
            "Paste a filter into Wireshark to see the frames. The pages of docs/checks say what "
            "each rule means. Ambiguous: the capture point cannot decide it."
        )
    ]
    if left > 0:
        notes.append(
            Note(
                f"{units.integer(left)} more findings were only counted; --max-findings lists more."
            )
        )
    table = Table(
        "By rule, with the first one's text",
        (
            Column("severity"),
            Column("rule", name=not several),
            Column("count", numeric=True),
            Column("the first one says"),
            Column("Wireshark's display filter", code=True),
        ),
        tuple(rows[:_MAX_ROWS]),
    )
    return Section("findings", "Findings", notes=tuple(notes), tables=(table,))
