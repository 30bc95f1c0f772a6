# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benchmarks measured: latency and bandwidth by message size and transport."""

from __future__ import annotations

from rocelab import metrics
from rocelab.group_by import group_by
from rocelab.record.read import Run
from rocelab.report import curves, series_order, wording
from rocelab.report.figure import Figure, Note, Section

_PERCENTILES = ("p50", "p99")
_BANDWIDTH_TITLES = {"one_way": "Bandwidth", "request": "Bandwidth of remote storage"}
_LATENCY_TITLES = {
    "one_way_half_rtt": "Latency, one way (half of a round trip)",
    "round_trip": "Latency, whole round trip",
    "request": "Latency of remote storage",
}


def latency(run: Run) -> Section:
    """Return the section on latency; each kind of latency has a figure of its own."""
    figures: list[Figure] = []
    groups = group_by(run.by_size(metrics.LATENCY), lambda i: (i.accelerator, i.kind, i.unit))
    for (accelerator, kind, unit), series in groups.items():
        same, words = (accelerator, kind, unit), wording.KINDS.get(kind, kind)
        percentiles = [
            (
                f"{name} of messages",
                [
                    item
                    for item in run.by_size(metrics.Latency(name).name)
                    if (item.accelerator, item.kind, item.unit) == same
                ],
            )
            for name in _PERCENTILES
        ]
        figures.append(
            curves.figure(
                series,
                slug=series_order.slug("latency", kind, accelerator),
                title=_LATENCY_TITLES.get(kind, f"Latency, {words}"),
                quantity="mean latency",
                caption=(
                    "Mean over the messages of a repetition, the only figure that every tool "
                    f"reports; {words}.",
                ),
                extra=percentiles,
                is_time=True,
            )
        )
    note = "This run has no latency: no latency benchmark was planned, or none succeeded."
    if figures:
        note = (
            "The time of a message from the sender's program to the receiver's. Half a round trip "
            "and a whole one are different quantities and never share an axis."
        )
    return Section("latency", "Latency", notes=(Note(note),), figures=tuple(figures))


def bandwidth(run: Run) -> Section:
    """Return the section on bandwidth, in bytes of message per second."""
    figures: list[Figure] = []
    groups = group_by(run.by_size(metrics.BANDWIDTH), lambda i: (i.accelerator, i.kind, i.unit))
    for (accelerator, kind, _), series in groups.items():
        words = wording.KINDS.get(kind, kind)
        rates = [
            item
            for item in run.by_size(metrics.MESSAGE_RATE)
            if (item.accelerator, item.kind) == (accelerator, kind)
        ]
        figures.append(
            curves.figure(
                series,
                slug=series_order.slug("bandwidth", kind, accelerator),
                title=_BANDWIDTH_TITLES.get(kind, f"Bandwidth, {words}"),
                quantity="bandwidth",
                caption=(f"Message bytes per second, without headers; {words}.",),
                extra=[("IOPS" if kind == "request" else "messages", rates)],
                is_time=True,
            )
        )
    note = "This run has no bandwidth: no bandwidth benchmark was planned, or none succeeded."
    if figures:
        note = "Message bytes that arrive per second when the sender never waits."
    return Section("bandwidth", "Bandwidth", notes=(Note(note),), figures=tuple(figures))
