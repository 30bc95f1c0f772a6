# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of a benchmark: which sizes one process measures, and how many bytes they send."""

from __future__ import annotations

from rocelab.plans.catalog import TESTS, Kind
from rocelab.plans.plan import Benchmark

MAX_TOGETHER = 256 << 20
"""Sizes share an mpirun up to this many message bytes: what follows has one for each size, with a
capture and a time limit of its own, so that a slow one costs no other. At 10 Mbit/s this many take
less than the plan's `timeout`."""
_STREAMS = {Kind.ONE_WAY, Kind.BOTH_WAYS, Kind.ALL_PAIRS}


def steps_of(benchmark: Benchmark) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of each step, in order; a step is one process or pair of processes.

    Only the first step may have several sizes: the suites have one number of iterations per run.
    """
    sizes = benchmark.sizes
    together = _together(benchmark) if benchmark.mpi and benchmark.mpi.sweep else 1
    return (sizes[:together], *((size,) for size in sizes[together:]))


def _together(benchmark: Benchmark) -> int:
    """How many of the first sizes share an mpirun."""
    sizes = benchmark.sizes
    if message_bytes(benchmark, sizes) is None:
        return len(sizes)
    for count in range(2, len(sizes) + 1):
        first, last = benchmark.iterations_of(sizes[0]), benchmark.iterations_of(sizes[count - 1])
        if first != last or (message_bytes(benchmark, sizes[:count]) or 0) > MAX_TOGETHER:
            return count - 1
    return len(sizes)


def message_bytes(benchmark: Benchmark, sizes: tuple[int, ...]) -> int | None:
    """Return the most message bytes that cross the link, without warm-up and retransmissions.

    None if the plan does not determine them.
    """
    kind = TESTS[benchmark.tool, benchmark.test].kind
    if kind is Kind.APPLICATION or benchmark.cpu_util or benchmark.command:
        return None
    if kind is Kind.WHOLE_FILE:
        return sum(sizes)
    # back and forth, or both ways at once
    total = 2 * sum(messages(benchmark, size) * size for size in sizes)
    mpi = benchmark.mpi
    return total * mpi.ranks**2 if mpi and kind is Kind.COLLECTIVE else total


def messages(benchmark: Benchmark, size: int) -> int:
    """Return how many messages of a size follow each other, one way: a window in each iteration."""
    mpi, kind = benchmark.mpi, TESTS[benchmark.tool, benchmark.test].kind
    if kind is Kind.WHOLE_FILE:
        return 1
    at_once = 1
    if mpi is not None and kind is not Kind.COLLECTIVE:
        pairs = mpi.ranks // 2 if kind is Kind.ALL_PAIRS else 1
        at_once = pairs * (mpi.window if kind in _STREAMS else 1)
    return benchmark.iterations_of(size) * at_once
