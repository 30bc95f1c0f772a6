# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a step may take, from the rate of what was measured before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rocelab import metrics
from rocelab.plans.benchmarks.tool import Value
from rocelab.plans.plan import Benchmark
from rocelab.plans.steps import message_bytes, messages

_SLACK = 3
"""How many times the promised time a step may take: warm-up, checks of the data, disturbances."""
_PACKET = 256
"""Bytes of the smallest RoCE path MTU: a message of n packets takes at most n times as long as one
of a single packet, because packets of one message follow each other."""
_SLOWEST = 10e6 / 8
"""Bytes/s assumed where nothing was measured yet."""


@dataclass
class AdaptiveTimeout:
    """The time limit of a program's steps over one transport, from how fast it was so far."""

    _seconds: dict[int, float] = field(default_factory=dict)
    """By size: of one message."""

    def learn(self, size: int, values: Iterable[Value]) -> None:
        """Add what was measured of a size; what says nothing about time is left out."""
        by_metric: Mapping[str, float] = {each.metric: each.value for each in values}
        if latency := by_metric.get(metrics.LATENCY):
            self._seconds[size] = 2 * latency / 1e9  # there and back
        elif rate := by_metric.get(metrics.MESSAGE_RATE):
            self._seconds[size] = 1 / rate
        elif bandwidth := by_metric.get(metrics.BANDWIDTH):
            self._seconds[size] = max(size, 1) / bandwidth

    def limit(self, benchmark: Benchmark, sizes: tuple[int, ...], *, by_time: bool) -> int:
        """Return the seconds after which a step of these sizes is aborted.

        The plan's `timeout` at least, and more where the step is known to take longer. `by_time`:
        the program sends for the plan's `seconds`.
        """
        if by_time:
            return benchmark.timeout + len(sizes) * benchmark.seconds
        promised = [self._forecast(benchmark, size) for size in sizes]
        return max(benchmark.timeout, round(_SLACK * sum(promised)))

    def _forecast(self, benchmark: Benchmark, size: int) -> float:
        """Seconds that the messages of a size take, extrapolated from the nearest smaller size."""
        known = [each for each in self._seconds if each <= size]
        if not known:
            return (message_bytes(benchmark, (size,)) or 0) / _SLOWEST
        nearest = max(known)
        each = self._seconds[nearest] * _packets(size) / _packets(nearest)
        return messages(benchmark, size) * each


def _packets(size: int) -> int:
    return max(1, -(-size // _PACKET))
