# SPDX-License-Identifier: GPL-2.0-or-later
"""What adapters say they sent: their own counters, where no driver's stages can exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocelab import units
from rocelab.group_by import group_by
from rocelab.metrics import Counter
from rocelab.plans.catalog import TRANSPORTS
from rocelab.record import adapter
from rocelab.record.read import Run, Series
from rocelab.report import series_order
from rocelab.report.figure import Column, Note, Section, Table

_NONE_HERE = (
    "There are no driver stages over {}: the adapter itself makes the packets, so no driver "
    "handles them and no capture on a host sees them."
)
_MEANING = (
    "Instead, the adapter's counters were read before and after each size at both ends; rxecpu "
    "measures the work left to the host's processors. Counters differ by driver and are not exact "
    "to the packet: other programs may use the port, and some counters lag."
)


def section(run: Run) -> Section | None:
    """Return the section; None when no cell used an adapter's counters."""
    counters = [item for item in run.series if _counter(item.metric)]
    if not counters:
        return None
    return Section(
        "adapters",
        "What the adapters counted",
        notes=(Note(f"{no_stages(item.transport for item in counters)} {_MEANING}"),),
        tables=(_sums(counters), _counters(counters)),
    )


def _counter(metric: str) -> str:
    """Return the name of an adapter's counter; empty for another metric."""
    parsed = Counter.parse(metric, "adapter")
    return parsed.counter if parsed else ""


def adapters_of(transports: Iterable[str]) -> list[str]:
    """Return those of the transports whose packets an adapter makes, each once."""
    names = {n for n in transports if n in TRANSPORTS and TRANSPORTS[n].by == "adapter"}
    return sorted(names, key=series_order.transport_rank)


def no_stages(transports: Iterable[str]) -> str:
    """Say that the driver's stages cannot exist over those that an adapter carries; or nothing."""
    names = adapters_of(transports)
    return _NONE_HERE.format(units.listing(names)) if names else ""


def _sums(series: Sequence[Series]) -> Table:
    """Packets and bytes of each step, from the counter of its driver that says so."""
    rows = []
    groups = group_by(series, lambda i: (i.benchmark, i.transport, i.size, i.node))
    for (benchmark, transport, size, node), some in groups.items():
        totals = adapter.sent_and_received(
            {_counter(item.metric): round(item.spread.median) for item in some}
        )
        rows.append(
            (
                *(benchmark, transport, some[0].driver, units.size(size), node),
                *(
                    units.ABSENT if count is None else units.integer(count)
                    for count in (totals.sent, totals.received, totals.sent_bytes)
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
        for key, some in group_by(
            series, lambda i: (i.transport, i.node, _counter(i.metric))
        ).items()
    }
    return Table(
        "Every counter that moved, over all benchmarks, sizes and repetitions. hw: the device's "
        "hw_counters; port: its port's counters; ethtool: the interface's `ethtool -S`",
        (Column("transport"), Column("node"), Column("counter"), Column("by", numeric=True)),
        tuple((*key, units.integer(round(total))) for key, total in totals.items() if total),
        folded=True,
    )
