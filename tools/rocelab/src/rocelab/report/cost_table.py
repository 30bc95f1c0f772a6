# SPDX-License-Identifier: GPL-2.0-or-later
"""What a message and a byte cost in time, packets and CPU, for MPI and verbs.

Combines the other sections' numbers in one row per transport and size.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

from rocelab import accelerators, metrics, units
from rocelab.group_by import group_by
from rocelab.metrics import Capsule, Stage
from rocelab.record.read import Run, Series
from rocelab.record.stage_costs import figure_of
from rocelab.report import series_order, wording
from rocelab.report.figure import Column, Note, Section, Table

_TIME = (metrics.LATENCY, metrics.MESSAGE_RATE)
_COUNTED = {
    "encapsulation": Stage("tx", "bth", "count"),
    "decapsulation": Stage("rx", "parse", "count"),
}
_MEANING = (
    "Medians over the repetitions, both nodes together. The time of a message is its latency or "
    "the inverse of the message rate. Encapsulation and decapsulation are of all packets, answers "
    "too, each by its number. CPU of a message is marginal: what one more message costs, without "
    "the start of the programs and the probes; all CPU is only known of programs that sleep. "
    "Columns with start divide all work by the messages. A dash: not measured, or measured only "
    "for all sizes of an mpirun together (including its start), which is a row of its own."
)
_TIMES = ("time per message", "time per byte")


def _columns(figure: str, start: str) -> tuple[str, ...]:
    return (
        *_TIMES,
        *("frames per message", "header bytes per frame"),
        *(f"{figure} {whole} per packet" for whole in _COUNTED),
        *(f"kernel CPU per message{start}", f"all CPU per message{start}"),
        *(f"kernel CPU per byte{start}", "kernel CPU per packet with start"),
    )


@dataclass(frozen=True)
class _Place:
    """One transport at one size: a row of a benchmark's table."""

    transport: str
    size: int


def section(run: Run) -> Section | None:
    """Return the section, a table for each benchmark; None when nothing was timed."""
    tables = []
    for (accelerator, benchmark), series in group_by(
        run.series, lambda i: (i.accelerator, i.benchmark)
    ).items():
        if not _medians(series, _TIME):
            continue
        figure = figure_of(series)
        marginal = any(item.kind == metrics.KERNEL_MARGINAL for item in series) or any(
            item.metric == metrics.MESSAGE_COST for item in series
        )
        rows = group_by(series, lambda i: _Place(i.transport, i.size))
        cells = (
            (place, tuple(_cells(place, some, figure, marginal=marginal)))
            for place, some in rows.items()
        )
        shown = [(place, row) for place, row in cells if any(map(_is, row))]
        shown.sort(
            key=lambda row: (
                (row[0].size == units.ALL_SIZES, row[0].size),
                series_order.transport_rank(row[0].transport),
            )
        )
        if shown:
            columns = _columns(figure, "" if marginal else " with start")
            tables.append(_table(accelerator, benchmark, columns, shown))
    if not tables:
        return None
    return Section(
        "costs", "Costs of a message and a byte", notes=(Note(_MEANING),), tables=tuple(tables)
    )


def _table(
    accelerator: str,
    benchmark: str,
    columns: Sequence[str],
    rows: Sequence[tuple[_Place, Sequence[str]]],
) -> Table:
    time = wording.time_unit("ns", accelerator)
    counts = accelerators.of(accelerator).counts_instructions
    labels = (f"{name} ({time})" if counts and name in _TIMES else name for name in columns)
    filled = [any(map(_is, column)) for column in zip(*(row for _, row in rows), strict=True)]
    return Table(
        f"{benchmark}, in {accelerators.INSTRUCTIONS if counts else time}",
        (
            Column("size", numeric=True),
            Column("transport"),
            *(Column(label, numeric=True) for label in compress(labels, filled)),
        ),
        tuple(
            (units.size(place.size), place.transport, *compress(row, filled)) for place, row in rows
        ),
    )


def _cells(
    place: _Place, series: Sequence[Series], figure: str, *, marginal: bool
) -> Iterator[str]:
    message = _time(series)
    yield _text(message)
    yield _text(_per_byte(message, place))
    yield _text(_frames(place, series))
    yield _text(_first(_medians(series, (metrics.HEADER_BYTES,))))
    for whole, counted in _COUNTED.items():
        yield _text(_per_packet(series, Capsule(whole, figure).name, counted.name))
    owner = metrics.KERNEL_MARGINAL if marginal else "kernel"
    kernel = sum(_cpu(series, "message", owner)) or None
    yield _text(kernel)
    every = _total(series) if marginal else sum(_cpu(series, "message", "communication"))
    yield _text(every or None)
    yield _text(_per_byte(kernel, place))
    packet = _cpu(series, "packet", "kernel")
    yield _text(statistics.fmean(packet) if packet else None)


def _time(series: Sequence[Series]) -> float | None:
    latency = _first(_medians(series, (metrics.LATENCY,)))
    rate = _first(_medians(series, (metrics.MESSAGE_RATE,)))
    return latency if latency is not None else 1e9 / rate if rate else None


def _frames(place: _Place, series: Sequence[Series]) -> float | None:
    """Data frames per message, including retransmissions."""
    frames = _first(_medians(series, (metrics.DATA_FRAMES,)))
    payload = _first(_medians(series, (metrics.PAYLOAD_BYTES,)))
    if not frames or not payload or place.size <= 0:
        return None
    return frames * place.size / payload


def _per_packet(series: Sequence[Series], cost: str, count: str) -> float | None:
    """Mean of `cost` over the packets of all opcode classes at both nodes."""
    counts = {(i.node, i.kind): i.spread.median for i in series if i.metric == count}
    weighted = [
        (i.spread.median, counts.get((i.node, i.kind), 0.0)) for i in series if i.metric == cost
    ]
    packets = sum(number for _, number in weighted)
    return sum(value * number for value, number in weighted) / packets if packets else None


def _cpu(series: Sequence[Series], amount: str, kind: str) -> list[float]:
    """CPU time of a packet or message at each node."""
    return [
        i.spread.median for i in series if (i.metric, i.kind) == (metrics.CpuPer(amount).name, kind)
    ]


def _total(series: Sequence[Series]) -> float:
    """What one more message costs all nodes."""
    costs = [i for i in series if (i.metric, i.kind) == (metrics.MESSAGE_COST, metrics.MARGINAL)]
    return sum(item.spread.median for item in costs)


def _medians(series: Iterable[Series], metrics: Sequence[str]) -> list[float]:
    return [i.spread.median for i in series if i.metric in metrics]


def _first(values: Sequence[float]) -> float | None:
    return values[0] if values else None


def _per_byte(value: float | None, place: _Place) -> float | None:
    return value / place.size if value is not None and place.size > 0 else None


def _is(cell: str) -> bool:
    return cell != units.ABSENT


def _text(value: float | None) -> str:
    return units.ABSENT if value is None else units.number(value)
