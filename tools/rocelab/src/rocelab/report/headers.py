# SPDX-License-Identifier: GPL-2.0-or-later
"""What a message costs on the wire: header bytes of a data frame, and the message's share."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rocelab import metrics, units
from rocelab.group_by import group_by
from rocelab.record.read import Run, Series
from rocelab.report import charts, palette, series_order, wording
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table

_TITLE = "What a message costs on the wire"
_HEADER, _FRAMES, _PAYLOAD = metrics.HEADER_BYTES, metrics.DATA_FRAMES, metrics.PAYLOAD_BYTES
_PARTS = (("message", palette.PAYLOAD.light), ("headers", palette.HEADERS.light))


@dataclass(frozen=True)
class Frame:
    """The mean data frame of one series: bytes of headers and of message (medians)."""

    series: Series
    headers: float
    message: float

    @property
    def efficiency(self) -> float:
        """The share of the frame's bytes that is message, 0 to 1."""
        return self.message / (self.message + self.headers)


def section(run: Run) -> Section:
    """Return the section on header bytes and efficiency."""
    if not run.of(_HEADER):
        note = "This run has no header bytes: no data frame was counted in a capture."
        return Section("headers", _TITLE, notes=(Note(note),))
    measured = list(frames(run))
    if not measured:
        note = f"Efficiency is not shown: the results have no {_PAYLOAD}, the message bytes."
        return Section("headers", _TITLE, notes=(Note(note, "warning"),))
    text = (
        "Every frame carries headers as well as the message; the smaller the message, the larger "
        "their share. These are byte counts, which emulation does not change."
    )
    groups = group_by(measured, lambda frame: frame.series.accelerator)
    return Section(
        "headers",
        _TITLE,
        notes=(Note(text),),
        figures=tuple(_figure(accelerator, members) for accelerator, members in groups.items()),
    )


def frames(run: Run) -> Iterator[Frame]:
    """Return the mean data frame of every series that has header bytes, frames and payload."""

    def by_key(metric: str) -> dict[tuple[str, ...], Series]:
        return {
            (i.accelerator, i.benchmark, i.transport, i.program, i.node, i.kind, str(i.size)): i
            for i in run.of(metric)
        }

    counts, payloads = by_key(_FRAMES), by_key(_PAYLOAD)
    for key, header in by_key(_HEADER).items():
        if key in counts and key in payloads:
            payload = dict(zip(payloads[key].repetitions, payloads[key].values, strict=True))
            messages = [
                payload[repetition] / count
                for repetition, count in zip(
                    counts[key].repetitions, counts[key].values, strict=True
                )
                if count > 0 and repetition in payload
            ]
            if messages and header.spread.median + statistics.median(messages) > 0:
                yield Frame(header, header.spread.median, statistics.median(messages))


def _figure(accelerator: str, measured: Sequence[Frame]) -> Figure:
    order = list(dict.fromkeys(frame.series.benchmark for frame in measured))
    panels = sorted(
        group_by(measured, lambda f: (f.series.benchmark, f.series.transport)).items(),
        key=lambda entry: (order.index(entry[0][0]), series_order.transport_rank(entry[0][1])),
    )
    rows = tuple(
        (
            frame.series.benchmark,
            frame.series.transport,
            frame.series.program,
            units.size(frame.series.size),
            units.number(frame.headers, 4),
            units.number(frame.message, 4),
            f"{frame.efficiency:.2%}",
        )
        for _, members in panels
        for frame in members
    )
    series = [frame.series for frame in measured]
    return Figure(
        slug=series_order.slug("wire", accelerator),
        title="Headers and message in the bytes of data frames",
        caption=(
            "Shares of the bytes of the mean data frame, without Ethernet's FCS; ACKs and other "
            "frames without data are not counted. Columns: header bytes (RoCE: Ethernet, IP, UDP, "
            "BTH, extended headers, pad, ICRC; TCP: Ethernet, IP, TCP with options) and message "
            "bytes per frame, and the message's share, the efficiency. "
            f"Medians over {units.plural(max(i.spread.count for i in series), 'repetition')}.",
            "Counted in the capture of the virtual link. With segmentation offload, one TCP "
            "super-frame replaces many frames of a physical wire, and its headers count once.",
        ),
        accelerator=accelerator,
        notes=wording.programs_notes(series),
        panels=tuple(
            _panel(f"{benchmark} over {transport}", members)
            for (benchmark, transport), members in panels
        ),
        legend=tuple(Legend(name, colour) for name, colour in _PARTS),
        tables=(
            Table(
                "Bytes of the mean data frame",
                (
                    Column("benchmark"),
                    Column("transport"),
                    Column("program"),
                    Column("size", numeric=True),
                    Column("header bytes", numeric=True),
                    Column("message bytes", numeric=True),
                    Column("efficiency", numeric=True),
                ),
                rows,
            ),
        ),
    )


def _panel(title: str, members: Sequence[Frame]) -> Panel:
    members = sorted(members, key=lambda frame: frame.series.size)
    parts = [
        charts.Part(
            row=units.size(frame.series.size),
            series=name,
            value=share,
            label=f"{name}, {units.size(frame.series.size)}: {units.number(amount)} B of a frame",
        )
        for frame in members
        for name, amount, share in (
            ("message", frame.message, frame.efficiency),
            ("headers", frame.headers, 1 - frame.efficiency),
        )
    ]
    columns = [
        ("header", [units.number(frame.headers) for frame in members]),
        ("message", [units.number(frame.message) for frame in members]),
        ("share", [f"{frame.efficiency:.1%}" for frame in members]),
    ]
    chart = charts.stacks(
        parts,
        rows=[units.size(frame.series.size) for frame in members],
        series=_PARTS,
        x_title="share of a frame's bytes",
        x_top=1.0,
        columns=columns,
    )
    words = "; ".join(
        f"{units.size(frame.series.size)}: {units.number(frame.headers)} B of headers, "
        f"{units.number(frame.message)} B of message, {frame.efficiency:.1%}"
        for frame in members
    )
    return Panel(title, chart, f"{title}, the mean data frame. {words}.")
