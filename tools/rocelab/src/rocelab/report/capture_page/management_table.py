# SPDX-License-Identifier: GPL-2.0-or-later
"""How connections were set up and ended by the CM."""

from __future__ import annotations

from typing import Any

from rocelab import units
from rocelab.capture import management
from rocelab.report.figure import Column, Note, Section, Table

_MAX_ROWS = 100
_NUMERIC = {"REQs", "MTU"}


def section(result: dict[str, Any]) -> Section | None:
    """Return a table of exchanges; None without any."""
    if not result["cm"]:
        return None
    columns = tuple(Column(name, numeric=name in _NUMERIC) for name in management.COLUMNS)
    notes = [
        Note(
            "READs are responder resources and initiator depth: what the REQ asks for, and what "
            "the REP grants."
        )
    ]
    notes += [Note(text, "warning") for text in management.reasons(result, _MAX_ROWS)]
    if left := management.count_left_out(result, _MAX_ROWS):
        notes.append(Note(f"{units.plural(left, 'exchange')} more are left out."))
    table = Table("By first message", columns, tuple(management.rows(result, _MAX_ROWS)))
    return Section("management", "Connection management", notes=tuple(notes), tables=(table,))
