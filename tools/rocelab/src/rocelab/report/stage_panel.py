# SPDX-License-Identifier: GPL-2.0-or-later
"""One panel of stacked stages, with sums next to the bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rocelab import stage_table, units
from rocelab.record.stage_costs import Bar, Cost
from rocelab.report import charts, palette, wording
from rocelab.report.figure import Legend, Panel

_CAPSULE = {"tx": "encap.", "rx": "decap."}
COLUMNS = (
    "Next to a bar: the sum of its stages, and how much of it is encapsulation (encap.) or "
    "decapsulation (decap.)."
)
"""What the columns next to the bars are."""


@dataclass(frozen=True)
class StageScale:
    """What the panels of a figure share: unit, longest bar in that unit, stages in legend order."""

    factor: float
    unit: str
    top: float
    stages: tuple[str, ...]

    @classmethod
    def of(cls, every: Iterable[Bar], accelerator: str) -> StageScale:
        """Return the scale that fits all bars of a figure; there must be one."""
        bars = list(every)
        top = max(bar.total for bar in bars)
        factor, unit = wording.work_scale([top], accelerator)
        measured = {cost.stage for bar in bars for cost in bar.costs} - stage_table.APART
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

    @property
    def series(self) -> list[tuple[str, str]]:
        """Names and colours, as charts take them."""
        return [(name, palette.STAGES[name].light) for name in self.stages]

    def text(self, value: float | None, digits: int = 3) -> str:
        """Return ns as a number in the unit of display."""
        return units.ABSENT if value is None else units.number(value / self.factor, digits)

    def amount(self, cost: Cost) -> str:
        """Return a stage's cost with its unit, and how it spreads over repetitions and packets."""
        low, high = cost.spread
        text = f"{self.text(cost.per_packet)} {self.unit}"
        if low != high:
            text += f", {self.text(low)} to {self.text(high)} over the repetitions"
        if cost.p50 is not None and cost.p99 is not None:
            text += f"; p50 {self.text(cost.p50)}, p99 {self.text(cost.p99)}"
        if cost.atypical:
            text += f"; mean {self.text(cost.mean)}"
        text += f"; {units.plural(cost.packets, 'packet')}"
        return f"{text}, {cost.atypical} of them not typical" if cost.atypical else text


@dataclass(frozen=True)
class Row:
    """A bar of a panel: one transport at one size."""

    transport: str
    bar: Bar

    @property
    def label(self) -> str:
        """What stands left of the bar."""
        return f"{units.size(self.bar.size)} {self.transport}"


def panel(title: str, rows: Sequence[Row], direction: str, scale: StageScale) -> Panel:
    """Return the panel of bars that share a direction."""
    bars = [row.bar for row in rows]
    chart = charts.stacks(
        [
            charts.Part(
                row=row.label,
                series=cost.stage,
                value=cost.per_packet / scale.factor,
                label=f"{row.transport}, {units.size(row.bar.size)}, {cost.stage}: "
                + scale.amount(cost),
            )
            for row in rows
            for cost in row.bar.costs
            if cost.stage not in stage_table.APART
        ],
        rows=[row.label for row in rows],
        series=scale.series,
        x_title=wording.work_title("time", scale.unit, "packet"),
        x_top=scale.top,
        columns=[
            ("sum", [scale.text(bar.total) for bar in bars]),
            (_CAPSULE[direction], [scale.text(bar.capsule) for bar in bars]),
        ],
    )
    words = "; ".join(
        f"{row.label}: "
        + ", ".join(f"{cost.stage} {scale.text(cost.per_packet)}" for cost in row.bar.costs)
        for row in rows
    )
    return Panel(title, chart, f"{title}, {scale.unit} per packet: {words}.")
