# SPDX-License-Identifier: GPL-2.0-or-later
"""What adapters say they sent: their own counters, where no driver's stages can exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocelab.bench.catalog import TRANSPORTS
from rocelab.report import fmt, grouping
from rocelab.report.figure import Column, Note, Section, Table
from rocelab.report.runfolder import Run, Series
from rocelab.run import adapter

_PREFIX = "adapter."
_NONE_HERE = (
    "The driver's stages cannot exist over {}: the adapter makes the packets itself, so there is "
    "no driver of packets to time, and no capture on a host sees them."
)
_MEANING = (
    "What is known instead is what the adapter counts, read before and after each size at both "
    "ends; and with rxecpu what is left for the host's processors to do. Counters differ by "
    "driver and are not exact to the packet: others may use the port, and some are read late."
)


def section(run: Run) -> Section | None:
    """Return the section; None when no cell used an adapter's counters."""
    found = [item for item in run.series if item.metric.startswith(_PREFIX)]
    if not found:
        return None
    return Section(
        "adapters",
        "What the adapters counted",
        notes=(Note(f"{no_stages(item.transport for item in found)} {_MEANING}"),),
        tables=(_sums(found), _counters(found)),
    )


def carried(transports: Iterable[str]) -> list[str]:
    """Return those of the transports whose packets an adapter makes, each once."""
    names = {n for n in transports if n in TRANSPORTS and TRANSPORTS[n].by == "adapter"}
    return sorted(names, key=grouping.transport_rank)


def no_stages(transports: Iterable[str]) -> str:
    """Say that the driver's stages cannot exist over those that an adapter carries; or nothing."""
    names = carried(transports)
    return _NONE_HERE.format(fmt.listing(names)) if names else ""


def _sums(series: Sequence[Series]) -> Table:
    """Packets and bytes of each step, from the counter of its driver that says so."""
    rows = []
    groups = grouping.by(series, lambda i: (i.benchmark, i.transport, i.size, i.node))
    for (benchmark, transport, size, node), some in groups.items():
        said = adapter.moved(
            {item.metric.removeprefix(_PREFIX): round(item.spread.median) for item in some}
        )
        rows.append(
            (
                *(benchmark, transport, some[0].driver, fmt.size(size), node),
                *(
                    fmt.ABSENT if count is None else fmt.grouped(count)
                    for count in (said.sent, said.received, said.sent_bytes)
                ),
            )
        )
    return Table(
        "Packets and bytes by the devices' own counters, medians over the repetitions",
        (
            *(Column("benchmark"), Column("transport"), Column("driver")),
            *(Column("size", numeric=True), Column("node")),
            Column("packets sent", numeric=True),
            Column("packets received", numeric=True),
            Column("bytes sent", numeric=True),
        ),
        tuple(rows),
    )


def _counters(series: Sequence[Series]) -> Table:
    """Every counter that moved, over the whole run."""
    totals = {
        key: sum(sum(item.values) for item in some)
        for key, some in grouping.by(
            series, lambda i: (i.transport, i.node, i.metric.removeprefix(_PREFIX))
        ).items()
    }
    return Table(
        "Every counter that moved, over all benchmarks, sizes and repetitions. hw: the device's "
        "hw_counters; port: its port's counters; ethtool: the interface's `ethtool -S`",
        (Column("transport"), Column("node"), Column("counter"), Column("by", numeric=True)),
        tuple((*key, fmt.grouped(round(total))) for key, total in totals.items() if total),
        folded=True,
    )
