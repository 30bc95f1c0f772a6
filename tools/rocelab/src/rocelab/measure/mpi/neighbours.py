# SPDX-License-Identifier: GPL-2.0-or-later
"""Have nodes find each other's link-layer addresses before MPI needs them.

When a rank connects, the kernel gives the neighbour a second to answer (ibv_create_ah(3) for RoCE).
A node that does not run for so long on a busy machine then ends the whole mpirun.
"""

from __future__ import annotations

from collections.abc import Sequence

from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once

_SECONDS = "20"
# a neighbour that does not answer is mpirun's to report
_ASK = 'netdev=$1 limit=$2; shift 2; for each; do ping -6 -c1 -w"$limit" -I"$netdev" "$each"; done'


def find(nodes: Sequence[Node], places: Sequence[Place]) -> None:
    """Have each node find the others, where places have link-local addresses.

    Raises TestbedError when a node does not answer.
    """

    def ask(i: int) -> None:
        others = [p.link_local for p in places if p is not places[i] and p.link_local]
        if others:
            argv = ("sh", "-c", _ASK, "sh", places[i].netdev, _SECONDS, *others)
            nodes[i].run(argv, timeout=60 * len(others), check=False)

    at_once(ask, range(len(places)))
