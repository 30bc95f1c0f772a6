# SPDX-License-Identifier: GPL-2.0-or-later
"""mpibench compared with NetPIPE, an independent ping-pong, in turn between the same ends.

NetPIPE prints the best of its trials. mpibench runs as many trials with as many round trips
(`--trials`), and its best trial is used here as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rocelab.measure.mpi import launch
from rocelab.plans.benchmarks.mpi import recipe
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.catalog import TRANSPORTS
from rocelab.plans.plan import MpiPlan
from rocelab.testbed.node import Node

TRIALS = 3
"""As many as Debian's NetPIPE 3.7.2 has built in: 50 round trips more are 300 messages more."""
_RESULT = "/run/rocelab/netpipe.out"
_PLAN = MpiPlan(
    ranks=2,
    ranks_per_node=1,
    method="osu",
    window=1,
    yield_when_idle=True,
    sweep=True,
    mca=(),
)


@dataclass
class Found:
    """Half a round trip in µs, by repetition."""

    netpipe: list[float] = field(default_factory=list)
    mpibench: list[float] = field(default_factory=list)


def in_turn(nodes: Sequence[Node], size: int, *, repetitions: int, times: int) -> Found:
    """Both programs in turn over TCP between two ends of one machine."""
    places = [Place(node.name, node.link.netdev) for node in nodes]
    settings = [recipe.for_node(TRANSPORTS["tcp"], place, one_machine=True) for place in places]
    results = Found()
    with launch.prepare(nodes, settings) as there:

        def mpirun(*program: str) -> str:
            return launch.run(
                program, _PLAN, nodes, there, control=None, timeout=240, launch_seconds=120
            ).stdout

        for _ in range(repetitions):
            results.netpipe.append(_netpipe(mpirun, nodes[0], size, times))
            results.mpibench.append(_mpibench(mpirun, size, times))
    return results


def _netpipe(mpirun: Callable[..., str], node: Node, size: int, times: int) -> float:
    """NetPIPE has it in a file: bytes, Mbit/s, seconds."""
    bounds = ("-l", str(size), "-u", str(size), "-p", "0")
    mpirun("NPopenmpi", *bounds, "-n", str(times), "-o", _RESULT)
    (line,) = node.run(("cat", _RESULT)).stdout.splitlines()
    measured, _, seconds = line.split()
    assert int(measured) == size
    return float(seconds) * 1e6


def _mpibench(mpirun: Callable[..., str], size: int, times: int) -> float:
    words = ("--json", "-i", str(times), "-t", str(TRIALS), "-s", str(size), "latency")
    (row,) = json.loads(mpirun("mpibench", *words))["results"]
    assert len(row["trials_ns"]) == TRIALS
    return float(min(row["trials_ns"])) / 1e3
