# SPDX-License-Identifier: GPL-2.0-or-later
"""The connections on an interface, in a table that renews itself until the capture ends.

A terminal shows the busiest ones, as many as it has lines for. Pipes and dumb terminals get a line
for each interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rocelab import units
from rocelab.terminal import capture_tables
from rocelab.terminal.console import is_plain
from rocelab.terminal.printable import printable

_LINES_AROUND = 6
"""Lines of a terminal that the table cannot have: the head, the column names, the last line."""
_MIN_ROWS = 3
Clock = Callable[[], float]


@dataclass(frozen=True)
class Rate:
    """What one side of a connection has sent, and how fast since the last look."""

    connection: dict[str, Any]
    way: dict[str, Any]
    bits_per_s: float


class LiveTable:
    """Shows one result after the other; use it as a context."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._before: dict[tuple[int, str], int] = {}
        self._since = self._started = clock()
        redraws = console.is_terminal and not is_plain()
        self._live = Live(console=console, auto_refresh=False, transient=True) if redraws else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, result: dict[str, Any]) -> None:
        """Show a result, as `--json` prints it, in place of the last one."""
        now = self._clock()
        rates = self._rates(result, now - self._since)
        self._since = now
        if self._live:
            most = max(_MIN_ROWS, (self._console.size.height - _LINES_AROUND) // 2)
            text = Text(self._head(result, rates, now), style="bold")
            self._live.update(Group(text, table(rates[:most])), refresh=True)
        else:
            self._console.print(self._head(result, rates, now), markup=False)
            # a pipe's reader shall not wait for a full buffer
            self._console.file.flush()

    def _rates(self, result: dict[str, Any], seconds: float) -> list[Rate]:
        """All directions, the busiest first."""
        rates = []
        now: dict[tuple[int, str], int] = {}
        for connection in result["connections"]:
            for way in connection["directions"]:
                key = (connection["id"], way["from"])
                now[key] = way["wire_bytes"]
                sent = way["wire_bytes"] - self._before.get(key, 0)
                rates.append(Rate(connection, way, 8 * sent / seconds if seconds > 0 else 0.0))
        self._before = now
        return sorted(rates, key=lambda rate: -rate.bits_per_s)

    def _head(self, result: dict[str, Any], rates: list[Rate], now: float) -> str:
        ways = [rate.way for rate in rates]
        parts = [
            f"{now - self._started:.0f} s",
            f"{printable(' '.join(result['input']['files']))}",
            units.plural(result["roce"]["packets"], "RoCE packet"),
            units.plural(len(result["connections"]), "connection"),
            f"{sum(rate.bits_per_s for rate in rates) / 1e9:.3f} Gbit/s",
            f"{sum(way['retransmitted'] for way in ways)} retransmitted",
            f"{sum(way['ce'] for way in ways)} CE",
            units.plural(result["findings_total"], "finding"),
        ]
        return ", ".join(parts)


def table(rates: list[Rate]) -> RenderableType:
    """A row for each direction."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    grid.add_column("id", justify="right")
    grid.add_column("from", min_width=12, overflow="fold")
    grid.add_column("to", min_width=12, overflow="fold")
    for name in ("Gbit/s", "packets", "msgs", "again", "lost", "NAK", "RNR", "CE", "p50", "p99"):
        grid.add_column(name, justify="right")
    for rate in rates:
        row, way = rate.connection, rate.way
        ends = (row["a"], row["b"]) if way["from"] == "a" else (row["b"], row["a"])
        latency = way["latency_ns"]
        grid.add_row(
            str(row["id"]),
            capture_tables.end(ends[0], capture_tables.network(row)),
            capture_tables.end(ends[1]),
            f"{rate.bits_per_s / 1e9:.3f}",
            *(str(way[name]) for name in ("packets", "messages", "retransmitted")),
            str(way["missing"] - way["missed_by_capture"]),
            str(sum(way["naks"].values())),
            *(str(way[name]) for name in ("rnr", "ce")),
            *(capture_tables.duration(latency[name]) for name in ("p50", "p99")),
        )
    return grid
