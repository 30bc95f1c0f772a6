# SPDX-License-Identifier: GPL-2.0-or-later
"""events.<node>.txt of a step with faults: the driver's events, as tracefs printed them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# COMM-PID [CPU] FLAGS SECONDS.MICROSECONDS: NAME: FIELDS, on CLOCK_MONOTONIC of the node
_LINE = re.compile(r"^.{1,40}\[\d+\] +\S+ +(\d{1,12})\.(\d{6}): (rxe_\w{1,32}): (.{1,400})$")


@dataclass(frozen=True)
class DriverEvent:
    """One line."""

    time_ns: int
    name: str
    fields: dict[str, str]


def parse(text: str) -> Iterator[DriverEvent]:
    """Yield the events in order; other lines are skipped."""
    for line in text.splitlines():
        if match := _LINE.match(line):
            pairs = dict(word.split("=", 1) for word in match[4].split() if "=" in word)
            yield DriverEvent(int(match[1] + match[2]) * 1000, match[3], pairs)


def gave_up_after_ns(text: str) -> int | None:
    """Return the time from the last retransmission to the error of the queue pair.

    None without either, as on a stock driver.
    """
    last: int | None = None
    for event in parse(text):
        if event.name == "rxe_retransmit":
            last = event.time_ns
        elif event.name == "rxe_qp_state" and event.fields.get("new") == "ERR":
            return None if last is None else event.time_ns - last
    return None
