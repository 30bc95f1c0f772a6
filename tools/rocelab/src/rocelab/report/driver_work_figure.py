# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's part of one message over each transport, by kind of work: headers, ICRC, copies."""

from __future__ import annotations

from collections.abc import Mapping

from rocelab import units
from rocelab.accelerators import INSTRUCTIONS
from rocelab.record import driver_work
from rocelab.report import charts, palette, series_order, wording
from rocelab.report.figure import Column, Figure, Legend, Panel, Table

_LABELS = {
    "headers": "headers",
    "icrc": "ICRC",
    "copy": "copying the message",
    "buffers": "buffers",
    "requests": "requests and completions",
    driver_work.BETWEEN: "between the stages: tasks, queues, locks",
}
_COLOURS = {
    "headers": palette.STAGES["bth"],
    "icrc": palette.STAGES["icrc"],
    "copy": palette.STAGES["copy"],
    "buffers": palette.STAGES["alloc"],
    "requests": palette.STAGES["exec"],
    driver_work.BETWEEN: palette.OUTSIDE,
}


def figure(
    parts: Mapping[str, Mapping[str, float]], message: str, accelerator: str, *, width: int
) -> Figure:
    """Return the figure of `parts`: by transport and kind of work, ns or instructions a message."""
    totals = [sum(some.values()) for some in parts.values()]
    factor, unit = wording.work_scale(totals, accelerator)
    texts = {
        name: [units.number(some[kind] / factor, 4) for kind in driver_work.KINDS]
        for name, some in parts.items()
    }
    labels = [_LABELS[kind] for kind in driver_work.KINDS]
    chart = charts.stacks(
        [
            charts.Part(
                name, _LABELS[kind], some[kind] / factor, f"{name}, {_LABELS[kind]}: {text} {unit}"
            )
            for name, some in parts.items()
            for kind, text in zip(driver_work.KINDS, texts[name], strict=True)
            if some[kind] > 0
        ],
        rows=list(parts),
        series=[(_LABELS[kind], colour.light) for kind, colour in _COLOURS.items()],
        x_title=wording.work_title("time", unit, "message"),
        x_top=max(totals) / factor,
        columns=[("rxe", [units.number(total / factor) for total in totals])],
        width=width,
    )
    spoken = "; ".join(
        f"{name}: " + ", ".join(f"{label} {text}" for label, text in zip(labels, some, strict=True))
        for name, some in texts.items()
    )
    quantity = "Instructions" if unit == INSTRUCTIONS else "Time"
    return Figure(
        slug=series_order.slug("answer-driver", accelerator),
        title="The driver's part of a message, by kind of work",
        caption=(
            f"One {message}: the stages of all of its packets at both nodes, acknowledgements "
            "included. Blue is encapsulation and decapsulation.",
        ),
        panels=(Panel("", chart, f"{quantity} of the driver for a {message}. {spoken}."),),
        legend=tuple(Legend(_LABELS[kind], _COLOURS[kind].light) for kind in driver_work.KINDS),
        tables=(
            Table(
                "The driver's part" + (f", in {unit}" if unit != INSTRUCTIONS else ""),
                (Column("transport"), *(Column(label, numeric=True) for label in labels)),
                tuple((name, *some) for name, some in texts.items()),
            ),
        ),
        accelerator=accelerator,
        columns=1,
    )
