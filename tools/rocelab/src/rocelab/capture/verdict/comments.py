# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict in an annotated capture: on the frames that it names, and on the capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MAX_SENTENCE = 1024
"""Characters of a sentence in the comment on the capture."""


def of_packets(verdict: Sequence[dict[str, Any]]) -> list[tuple[int, str]]:
    """Return what the verdict on one capture says about a frame, with the frame's number.

    The text is `NUMBER KIND CAUSE CERTAINTY: WHAT`, with the cost if there is one.
    """
    rows = []
    for number, row in enumerate(verdict, 1):
        cost = f" Cost: {row['cost']}." if row["cost"] else ""
        head = f"{number} {row['kind']} {row['cause']} {row['certainty']}"
        text = f"{head}: {row['what']}{cost}"
        rows += [(frame["packet"], text) for frame in row["frames"]]
    return rows


def of_capture(verdict: Sequence[dict[str, Any]]) -> str | None:
    """Return the whole verdict as text of several lines; None if it is empty."""
    # by its first words a copy is known as one that may be replaced
    lines = ["rocelab annotate: verdict"]
    for number, row in enumerate(verdict, 1):
        sure = "" if row["certainty"] == "certain" else f" ({row['certainty']})"
        lines.append(f"{number}. {_printable(row['what'])}{sure}")
        if row["cost"]:
            lines.append(f"   Cost: {_printable(row['cost'])}.")
        lines.append(f"   {_printable(row['advice'])}")
        if row["filter"]:
            lines.append(f"   Frames: {row['filter']}")
    return "\n".join(lines) if verdict else None


def _printable(text: str) -> str:
    """Text of bounded length with every control and format character made visible."""
    return "".join(
        char if char.isprintable() else " " if char.isspace() else f"\\x{ord(char):02x}"
        for char in text[:_MAX_SENTENCE]
    )
