# SPDX-License-Identifier: GPL-2.0-or-later
"""The PSNs of a connection over time, with its findings marked."""

from __future__ import annotations

import polars as pl

from rocelab import units
from rocelab.capture.picture import Picture
from rocelab.capture.sequence import KINDS, Sequence, Space
from rocelab.report import palette, time_charts
from rocelab.report.capture_page.wording import ends, printable
from rocelab.report.figure import Column, Figure, Legend, Panel, Section, Table


def section(picture: Picture) -> Section | None:
    """Return diagrams for each side's requests of some connections, or None without any.

    The first connection's are shown, the others' on demand.
    """
    start = picture.over_time.start_ns
    figures = tuple(
        _figure(psns, space, start, folded=at > 0)
        for at, psns in enumerate(picture.psns)
        for space in psns.spaces
    )
    if not figures:
        return None
    return Section("sequence", "Sequence diagrams", figures=figures)


def anchors(picture: Picture) -> dict[int, str]:
    """Where the diagrams are, by connection."""
    return {
        psns.connection["id"]: _slug(psns, psns.spaces[0]) for psns in picture.psns if psns.spaces
    }


def _slug(psns: Sequence, space: Space) -> str:
    return f"sequence-{psns.connection['id']}-{space.requester}"


def _figure(psns: Sequence, space: Space, start_ns: int, *, folded: bool) -> Figure:
    sender, receiver = ends(psns.connection, space.requester)
    first, last = space.points["time_ns"].min(), space.points["time_ns"].max()
    assert isinstance(first, int)
    assert isinstance(last, int)
    factor, unit = units.scale("ns", [last - first])
    base = space.points["psn"].min()
    assert isinstance(base, int)
    frame = space.points.select(
        x=(pl.col("time_ns") - first) / factor,
        y=(pl.col("psn") - base).cast(pl.Float64),
        series=pl.col("kind"),
    )
    labels = [
        time_charts.Label((mark.time_ns - first) / factor, mark.psn - base, printable(mark.label))
        for mark in space.marks
    ]
    kinds = [kind for kind in KINDS if kind in frame["series"].unique().to_list()]
    series = [(kind, palette.PACKETS[kind].light) for kind in kinds]
    chart = time_charts.points(
        frame,
        labels,
        series=series,
        x_title=f"time after the first of them ({unit})",
        y_title=f"PSN {units.MINUS} {base % (1 << 24)}",
        x_top=(last - first) / factor,
    )
    counts = frame.group_by("series").len()
    words = ", ".join(f"{units.integer(n)} {kind}" for kind, n in sorted(counts.iter_rows()))
    thinned = (
        (f"Of {units.integer(space.packets)} packets, those are drawn that others do not hide.",)
        if frame.height < space.packets
        else ()
    )
    left = (
        (f"{units.integer(psns.marks_left_out)} more findings are not marked.",)
        if psns.marks_left_out
        else ()
    )
    return Figure(
        slug=_slug(psns, space),
        title=f"Connection {psns.connection['id']}: requests of {sender}",
        caption=(
            f"Requests of {sender} and the responses of {receiver} to them, by PSN. A request that "
            "goes back down was sent again, or came late. Circles are findings: hover over one, or "
            "go there with the Tab key.",
            f"The first packet came {units.quantity(first - start_ns, 'ns')} after the capture's "
            "first frame.",
            *thinned,
            *left,
        ),
        panels=(Panel("", chart, f"PSNs over time: {words}; {len(labels)} findings marked."),),
        legend=(
            *(Legend(kind, colour) for kind, colour in series),
            *((Legend("finding", palette.FINDING.light),) if labels else ()),
        ),
        tables=(
            Table(
                "Findings marked",
                (Column(f"time ({unit})", numeric=True), Column("PSN", numeric=True), Column("")),
                tuple(
                    (
                        units.number(label.x, 6),
                        str((int(label.y) + base) % (1 << 24)),
                        label.text,
                    )
                    for label in labels
                ),
            ),
        ),
        accelerator="",
        columns=1,
        folded=folded,
        scrolls=True,
    )
