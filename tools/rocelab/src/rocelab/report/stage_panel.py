# SPDX-License-Identifier: GPL-2.0-or-later
"""One panel of stacked stages, with sums next to the bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rocelab import accelerators, stage_table, units
from rocelab.record.stage_costs import Bar
from rocelab.report import charts, palette, wording
from rocelab.report.figure import Legend, Panel

_CAPSULE = {"tx": "encap.", "rx": "decap."}


def columns_caption(accelerator: str) -> str:
    """Say what the columns next to the bars are."""
    counts = accelerators.of(accelerator).counts_instructions
    unit = f", both in {wording.time_unit('ns', accelerator)}" if counts else ""
    return (
        "Columns on the right: the sum of the stages drawn; its encapsulation or decapsulation "
        "part; and, on receipt, two times that are not work on this packet and not in the sum: "
        "sending the reply, whose own stages are shown where it is sent, and the wait in the queue "
        f"pair's queue{unit}. Packets whose task was switched out in between are not in the means."
    )


@dataclass(frozen=True)
class StageScale:
    """What the panels of a figure share: unit, longest bar in that unit, stages in legend order."""

    factor: float
    unit: str
    top: float
    stages: tuple[str, ...]

    @classmethod
    def of(cls, places: Iterable[Sequence[Bar]], accelerator: str) -> StageScale:
        """Return the scale that fits all bars of a figure; there must be one."""
        every = [bar for found in places for bar in found]
        top = max(bar.total for bar in every)
        factor, unit = wording.work_scale([top], accelerator)
        measured = {cost.stage for bar in every for cost in bar.costs} - stage_table.APART
        return cls(
            factor,
            unit,
            top / factor,
            tuple(name for name in stage_table.EVERY_NAME if name in measured),
        )

    @property
    def legend(self) -> tuple[Legend, ...]:
        """The legend of the figure."""
        return tuple(Legend(name, palette.STAGES[name].light) for name in self.stages)

    def text(self, value: float | None, digits: int = 3) -> str:
        """Return ns as a number in the unit of display."""
        return units.ABSENT if value is None else units.number(value / self.factor, digits)


def panel(title: str, rows: Sequence[tuple[str, Bar]], direction: str, scale: StageScale) -> Panel:
    """Return the panel of labelled bars that share a direction."""
    found = [bar for _, bar in rows]
    columns = [
        ("sum", [scale.text(bar.total) for bar in found]),
        (_CAPSULE[direction], [scale.text(bar.capsule) for bar in found]),
    ]
    if direction == "rx":
        for stage in (*stage_table.ANSWERING, *stage_table.WAITING):
            costs = [bar.cost(stage) for bar in found]
            columns.append((stage, [scale.text(c.per_packet if c else None) for c in costs]))
    chart = charts.stacks(
        [
            charts.Part(
                row=label,
                series=cost.stage,
                value=cost.per_packet / scale.factor,
                label=f"{cost.stage}, {label}: {scale.text(cost.per_packet)} {scale.unit}",
            )
            for label, bar in rows
            for cost in bar.costs
            if cost.stage not in stage_table.APART
        ],
        rows=[label for label, _ in rows],
        series=[(name, palette.STAGES[name].light) for name in scale.stages],
        x_title=wording.work_title("time", scale.unit, "packet"),
        x_top=scale.top,
        columns=columns,
    )
    words = "; ".join(
        f"{label}: " + ", ".join(f"{c.stage} {scale.text(c.per_packet)}" for c in bar.costs)
        for label, bar in rows
    )
    return Panel(title, chart, f"{title}, {scale.unit} per packet: {words}.")
