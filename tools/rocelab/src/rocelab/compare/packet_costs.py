# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs in each stage of several drivers, side by side.

On a clock that counts instructions, of a typical packet in each stage, or of the cheapest one in
runs of older versions: both repeat. In real time, the median of the rounds' means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from rocelab import accelerators, metrics, stage_table
from rocelab.errors import CellError
from rocelab.record import read
from rocelab.record.folder import RunFolder
from rocelab.record.read import Json
from rocelab.record.stage_costs import is_acknowledgement
from rocelab.stats.summary import median

CRC = "icrc"
_CHEAPEST = "min"
_PACKETS = {
    metrics.TYPICAL: "a typical packet",
    _CHEAPEST: "the cheapest packet",
    metrics.MEAN: "a packet, mean",
}


@dataclass(frozen=True)
class Measured:
    """One driver: how it was named, and its run folders, one for each round."""

    name: str
    crc_by: str
    """What computes its ICRC: the crypto API or crc32_le()."""
    runs: tuple[Path, ...]


@dataclass(frozen=True, order=True)
class Packet:
    """What a column of numbers is about."""

    transport: str
    test: str
    opcode: str
    size: int


Place = tuple[str, str]
"""Direction and stage."""


@dataclass(frozen=True)
class Driver:
    """What packets cost in one driver."""

    name: str
    kernel: str
    crc_by: str
    costs: Mapping[Packet, Mapping[Place, float]]
    spread: Mapping[Packet, Mapping[Place, float]]
    """How far the rounds and both ends are apart in what `costs` is taken from."""

    def total(self, packet: Packet, direction: str) -> float:
        """Return the sum of the stages that are work on the packet."""
        stages = self.costs.get(packet, {}).items()
        return sum(cost for (way, _), cost in stages if way == direction)


@dataclass(frozen=True)
class Costs:
    """Several drivers, in the order in which they were given."""

    accelerator: str
    unit: str
    figure: str
    """Of each stage: `typical`, `min` or `mean`."""
    rounds: int
    drivers: tuple[Driver, ...]

    @property
    def packet(self) -> str:
        """Of which packet the costs are, as a heading has it."""
        return _PACKETS[self.figure]

    @property
    def packets(self) -> tuple[Packet, ...]:
        """The packets that any driver has, in order."""
        return tuple(sorted({packet for driver in self.drivers for packet in driver.costs}))

    @property
    def places(self) -> tuple[Place, ...]:
        """The stages that any driver has, in the order in which a packet passes them."""
        costly = {
            place for driver in self.drivers for stages in driver.costs.values() for place in stages
        }
        order = [(stage.direction, stage.name) for stage in stage_table.STAGES]
        return tuple(place for place in order if place in costly)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The ICRC's part, what the first and the last driver differ in, how far rounds differ."""
        first, last = self.drivers[0], self.drivers[-1]
        lines = []
        *_, largest = self.packets
        kind = [one for one in self.packets if replace(one, size=largest.size) == largest]
        for packet in dict.fromkeys((kind[0], largest)):
            parts = []
            for driver in self.drivers:
                crc = sum(cost for (_, stage), cost in driver.costs[packet].items() if stage == CRC)
                total = sum(driver.total(packet, way) for way in ("tx", "rx"))
                parts.append(
                    f"{driver.name} {crc:,.0f} of {total:,.0f} ({100 * crc / total:.0f} %, "
                    f"{driver.crc_by})"
                )
            lines.append(
                f"ICRC, sent and received, {packet.opcode} of {packet.size} bytes over "
                f"{packet.transport}, in {self.unit}: {'; '.join(parts)}."
            )
        if last is not first:
            moves = [
                f"{packet.transport} {packet.size} bytes {after - before:+,.0f}"
                for packet in self.packets
                if packet in first.costs and packet in last.costs
                for before, after in [
                    [sum(one.total(packet, way) for way in ("tx", "rx")) for one in (first, last)]
                ]
            ]
            lines.append(
                f"A packet, sent and received, from {first.name} to {last.name}: "
                f"{', '.join(moves)} {self.unit}."
            )
        return *lines, self._repeats

    @property
    def _repeats(self) -> str:
        """How far the rounds and both ends of one driver are apart, and in which stage most."""
        apart = [
            (gap, f"{way} {stage} of {driver.name}, {packet.transport} {packet.size} bytes")
            for driver in self.drivers
            for packet, stages in driver.spread.items()
            for (way, stage), gap in stages.items()
        ]
        most, where = max(apart)
        same = sum(gap == 0 for gap, _ in apart)
        counted = f"{self.rounds} round{'s' * (self.rounds > 1)} and both ends"
        if not most:
            return f"{counted} agree in each of the {len(apart)} values."
        return (
            f"{counted} agree in {same} of {len(apart)} values; furthest apart is {where}: "
            f"by {most:,.0f} {self.unit}."
        )


def of(measured: Sequence[Measured]) -> Costs:
    """Read what each driver's runs measured. Raises CellError if one has no stages."""
    metas = [Json(RunFolder(one.runs[0]).meta()) for one in measured]
    accelerator = metas[0].text("accelerator")
    counts = accelerators.of(accelerator).counts_instructions
    figure = _figure([run for one in measured for run in one.runs]) if counts else metrics.MEAN
    drivers = []
    unit = ""
    for one, meta in zip(measured, metas, strict=True):
        costs, spread, unit = _costs(one.runs, figure)
        if not costs:
            raise CellError(
                f"{one.name} has no stages",
                cause="the probe saw no packets",
                action=f"Look at its run with `rocelab show {one.runs[0]}`.",
            )
        _, node = next(iter(meta.object("nodes").items()))
        crc = ", ".join(node.texts("crc32_drivers")[:1])
        by = f"{one.crc_by}: {crc}" if crc and "API" in one.crc_by else one.crc_by
        kernel = node.text("kernel").partition(" ")[0]
        drivers.append(Driver(one.name, kernel, by, costs, spread))
    return Costs(accelerator, unit, figure, len(measured[0].runs), tuple(drivers))


_ByPlace = dict[Packet, dict[Place, float]]


def _figure(runs: Iterable[Path]) -> str:
    """The typical packet if every stage of all runs has it, else the cheapest one."""
    counts = Counter(
        stage.figure
        for run in runs
        for name in read.results(run)["metric"]
        if (stage := metrics.Stage.parse(name))
    )
    return metrics.TYPICAL if counts[metrics.TYPICAL] == counts[metrics.MEAN] else _CHEAPEST


def _costs(runs: Sequence[Path], figure: str) -> tuple[_ByPlace, _ByPlace, str]:
    """What each stage costs, how far apart the values behind that are, and their unit."""
    by_packet: dict[Packet, dict[Place, list[float]]] = {}
    unit = ""
    for run in runs:
        table = read.results(run).filter(pl.col("size").is_not_null())
        for row in table.iter_rows(named=True):
            stage = metrics.Stage.parse(row["metric"])
            if stage is None or stage.stage in stage_table.APART or is_acknowledgement(row["kind"]):
                continue
            if stage.figure != figure:
                continue
            unit = row["unit"]
            packet = Packet(row["transport"], row["test"], row["kind"], row["size"])
            stages = by_packet.setdefault(packet, {})
            stages.setdefault((stage.direction, stage.stage), []).append(row["value"])
    # what disturbs a count only adds to it
    chosen = median if figure == metrics.MEAN else min
    costs, spread = (
        {
            packet: {place: float(of_all(values)) for place, values in stages.items()}
            for packet, stages in by_packet.items()
        }
        for of_all in (chosen, lambda values: max(values) - min(values))
    )
    return costs, spread, unit
