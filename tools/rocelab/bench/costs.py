# SPDX-License-Identifier: GPL-2.0-or-later
"""Compute the probes' cost from samples: medians, additions, targets. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

OFF, DUMP, EMPTY = "events off", "rxedump", "stamps, empty programs"
STAT, XMIT, SAMPLED = "rxestat", "rxestat --xmit", "rxestat --sample 16"
WORK, TOP, TOP_SAMPLED = "rxestat --work-requests", "rxetop", "rxetop --sample 16"
GROUPED = "rxestat --group netns"
FIXES = "fixes only"
"""The fixes of the stock driver: what we added is in the difference to OFF and BARE."""
BARE = "events off, no RoCE v1"
"""The fixes and the events: RoCE v1 is in the difference to OFF."""
STAMPS = ("rxe_tx_stamps", "rxe_rx_stamps")
"""What rxestat reads."""
EVENTS = (*STAMPS, "rxe_tx_packet", "rxe_rx_packet", "rxe_rx_done")
ALONE = {event: f"{event}, empty program" for event in EVENTS}
STOCK, BPFTRACE, LIBBPF = "stock", "stock, bpftrace", "stock, libbpf (rxestat)"
_WATCHED = (*ALONE.values(), EMPTY, STAT, XMIT, WORK, GROUPED, SAMPLED, TOP, TOP_SAMPLED, DUMP)
_BUILDS = (FIXES, BARE, OFF)
ORDER = (STOCK, *_BUILDS, *_WATCHED, LIBBPF, BPFTRACE)
_BASE = {
    **dict.fromkeys((*_BUILDS, LIBBPF, BPFTRACE), STOCK),
    **dict.fromkeys(_WATCHED, OFF),
}
"""What each is compared with: the same load of the same module, but for the first."""

Samples = Mapping[str, Sequence[float]]
"""Configuration → instructions or cycles per WRITE and ACK, one for each load of a module."""
Contributors = Mapping[str, Sequence[tuple[str, float]]]
"""Configuration → the parts of what it adds, in instructions."""


@dataclass(frozen=True)
class Row:
    """A configuration at one size."""

    name: str
    median: float
    low: float
    high: float
    added: float | None
    """Median of what it adds, load by load; None for the one that adds nothing."""
    added_low: float | None
    added_high: float | None


@dataclass(frozen=True)
class Target:
    """A bound, and what was found."""

    what: str
    bound: float
    found: float
    contributor: str

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.found <= self.bound


def rows(samples: Samples) -> list[Row]:
    """A row for each configuration that was measured."""
    every = []
    for name in ORDER:
        values = samples.get(name)
        if not values:
            continue
        added: list[float] = []
        if name in _BUILDS:
            # two modules: their loads have nothing to do with one another
            added = [value - median(samples[STOCK]) for value in values]
        elif name in _BASE:
            added = [v - base for v, base in zip(values, samples[_BASE[name]], strict=True)]
        every.append(
            Row(
                name,
                *(median(values), min(values), max(values)),
                *((median(added), min(added), max(added)) if added else (None, None, None)),
            )
        )
    return every


def targets(
    samples: Samples, contributors: Mapping[str, Sequence[tuple[str, float]]]
) -> list[Target]:
    """Return the targets for the probes' cost at one size."""
    by_name = {row.name: row for row in rows(samples)}
    stock = by_name[STOCK].median

    def added(name: str) -> float:
        return by_name[name].added or 0.0

    def largest(name: str) -> str:
        parts = contributors.get(name, ())
        return "" if not parts else "{}: {:,.0f}".format(*max(parts, key=lambda part: part[1]))

    bounds = [Target("events off, of the path", 0.005, added(OFF) / stock, largest(OFF))]
    if FIXES in by_name:
        own = added(OFF) - added(FIXES)
        bounds.append(Target("events off, without the fixes", 0.005, own / stock, largest(OFF)))
    if STAT in by_name:
        bounds.append(Target("rxestat, of the path", 0.12, added(STAT) / stock, largest(STAT)))
    if SAMPLED in by_name:
        share = added(SAMPLED) / stock
        bounds.append(Target(f"{SAMPLED}, of the path", 0.03, share, largest(SAMPLED)))
    if STAT in by_name and BPFTRACE in by_name:
        share = added(STAT) / added(BPFTRACE)
        bounds.append(Target("rxestat, of bpftrace", 0.10, share, largest(STAT)))
    if DUMP in by_name and STAT in by_name:
        bounds.append(Target("rxedump, of rxestat", 1.5, added(DUMP) / added(STAT), largest(DUMP)))
    return bounds


def parts_of(samples: Samples, document: Mapping[str, Any]) -> dict[str, list[tuple[str, float]]]:
    """Where additions come from; `document` is rxestat's own, which states what it costs.

    A WRITE and its ACK raise each event twice.
    """
    by_name = {row.name: row for row in rows(samples)}
    driver = by_name[EMPTY].added or 0.0
    parts: dict[str, list[tuple[str, float]]] = {}
    if OFF in by_name:
        fixes = by_name[FIXES].added or 0.0 if FIXES in by_name else 0.0
        off, bare = (by_name[name].added or 0.0 for name in (OFF, BARE))
        parts[OFF] = [
            ("the fixes of the stock driver", fixes),
            ("the events' branches", bare - fixes),
            ("RoCE v1", off - bare),
        ]
    common = ("the driver's clock reads and records, and the kernel's way to programs", driver)
    if STAT in by_name:
        programs = 2 * sum(float(ns or 0) for ns in document["probe_ns"].values())
        rest = (by_name[STAT].added or 0.0) - driver - programs
        parts[STAT] = [
            common,
            ("rxestat's programs", programs),
            ("the rest", rest),
        ]
    if DUMP in by_name:
        parts[DUMP] = [
            common,
            ("rxedump's programs and ring buffer", (by_name[DUMP].added or 0.0) - driver),
        ]
    return parts


def text(size: int, unit: str, samples: Samples, bounds: Sequence[Target]) -> str:
    """Format the table and the targets of one size."""
    lines = [f"{size} bytes: {unit} of an RDMA WRITE and its ACK, both ends"]
    lines += [f"{'configuration':28} {'median':>9} {'spread':>17} {'added':>9} {'spread':>17}"]
    for row in rows(samples):
        line = f"{row.name:28} {row.median:9,.0f} {_range(row.low, row.high):>17}"
        if row.added is not None and row.added_low is not None and row.added_high is not None:
            line += f" {row.added:+9,.0f} {_range(row.added_low, row.added_high):>17}"
        lines.append(line)
    for target in bounds:
        verdict = "met" if target.met else f"MISSED; largest contributor: {target.contributor}"
        lines.append(
            f"  {target.what}: {target.found:.2%} (target: at most {target.bound:.1%}) {verdict}"
        )
    return "\n".join(lines)


def as_json(samples: Samples, bounds: Sequence[Target]) -> dict[str, Any]:
    """Return the same as JSON values."""
    return {
        "samples": {name: list(values) for name, values in samples.items()},
        "rows": [asdict(row) for row in rows(samples)],
        "targets": [{**asdict(target), "met": target.met} for target in bounds],
    }


def _range(low: float, high: float) -> str:
    return f"{low:,.0f} to {high:,.0f}"
