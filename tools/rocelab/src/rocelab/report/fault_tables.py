# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the link that a plan asked for: what each one took, and how it recovered."""

from __future__ import annotations

from rocelab import units
from rocelab.accelerators import is_emulated
from rocelab.record.read import Json, Run
from rocelab.record.text import one_line
from rocelab.report import facts, wording
from rocelab.report.figure import Column, Note, Section, Table

_MEANING = (
    "Each fault met one packet of one message, at the link. The time to recover runs from the "
    "client's first request for that packet to the first good answer, both in the capture at the "
    "client's card; the usual time is the median of the packets that no fault met. Causes are the "
    "analyzer's and, like NAKs and counters, of all faults of the size together."
)
_ENDS = (
    "From the client's first request for the fault's packet until its queue pair was in error: the "
    "capture's time until the last packet, then the driver's time until the error. Tries: how "
    "often that packet was sent."
)
_STATUSES = {
    12: "IBV_WC_RETRY_EXC_ERR (no answer)",
    13: "IBV_WC_RNR_RETRY_EXC_ERR (receiver not ready)",
}
_CAUSES = {
    "after_nak": "NAK",
    "after_rnr": "RNR NAK",
    "after_response_gap": "gap in the answers",
    "after_timeout": "timer",
    "spurious": "needlessly",
    "ambiguous": "cause unknown",
}


def section(run: Run) -> Section | None:
    """Return the section; None without faults in any cell."""
    steps = [
        (cell.name, step.object("faults"))
        for cell in run.cells
        if cell.content is not None
        for step in cell.content.objects("steps")
    ]
    rows = [_row(cell, faults, each) for cell, faults in steps for each in faults.objects("mended")]
    if not rows:
        return None
    ended = [_client_end(cell, faults) for cell, faults in steps if faults.object("ended").data]
    emulated = [name for name in facts.accelerators(run) if is_emulated(name)]
    return Section(
        "faults",
        "Faults and recovery",
        notes=(
            Note(_MEANING),
            *([Note(_ENDS)] if ended else []),
            *(Note(wording.accelerator_caption(name), "warning") for name in emulated),
        ),
        tables=(
            Table(
                "Each fault, and how its connection recovered",
                (
                    Column("cell", name=True),
                    Column("fault"),
                    Column("packet"),
                    Column("on wire as expected"),
                    Column("recovered in", numeric=True),
                    Column("usual", numeric=True),
                    Column("sent again by client", numeric=True),
                    Column("by server", numeric=True),
                    Column("because of"),
                    Column("NAKs"),
                    Column("driver counted"),
                ),
                tuple(rows),
            ),
            *([_table_of_ends(ended)] if ended else []),
        ),
    )


def _table_of_ends(rows: list[tuple[str, ...]]) -> Table:
    return Table(
        "Connections that a fault ended, as it should",
        (
            Column("cell", name=True),
            Column("gave up after", numeric=True),
            Column("tries", numeric=True),
            Column("packets sent", numeric=True),
            Column("application saw"),
            Column("exit status", numeric=True),
        ),
        tuple(rows),
    )


def _client_end(cell: str, faults: Json) -> tuple[str, ...]:
    ended, tried = faults.object("ended"), faults.object("unanswered")
    status = ended.integer("completion_status")
    return (
        cell,
        _time(ended.integer("gave_up_ns")),
        _count(tried.integer("tries")),
        _count(tried.integer("sent")),
        units.ABSENT if status is None else _STATUSES.get(status, f"completion status {status}"),
        _count(ended.integer("exit_status")),
    )


def _row(cell: str, faults: Json, mended: Json) -> tuple[str, ...]:
    again = faults.object("sent_again")
    return (
        cell,
        f"{mended.text('fault')}: {mended.text('done')}",
        f"message {mended.text('message', '?')}, packet {mended.text('packet', '?')}, "
        f"{mended.text('direction').replace('_', ' ')}",
        mended.text("found"),
        _time(mended.integer("recovered_ns")),
        _time(faults.integer("usual_ns")),
        *(_count(again.integer(end)) for end in ("client", "server")),
        _with_names(faults.object("causes"), _CAUSES),
        _with_names(faults.object("naks"), {}),
        "; ".join(
            f"{node}: {_with_names(counters, {})}"
            for node, counters in faults.object("driver").items()
            if counters.data
        )
        or units.ABSENT,
    )


def _with_names(counts: Json, names: dict[str, str]) -> str:
    counted = [f"{names.get(key, one_line(key))} {counts.text(key)}" for key in counts.data]
    return ", ".join(counted) or units.ABSENT


def _time(ns: int | None) -> str:
    return units.ABSENT if ns is None else units.quantity(ns, "ns")


def _count(number: int | None) -> str:
    return units.ABSENT if number is None else units.integer(number)
