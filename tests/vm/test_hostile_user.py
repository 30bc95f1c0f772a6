# SPDX-License-Identifier: GPL-2.0-or-later
"""A local user who changes mapped work queues under the driver's hands: the kernel stays silent.

Two processors, since the changes race with the driver. A packet socket is open on the link: what
a packet has claimed of its own headers is followed there. ROCELAB_HOSTILE_SEED asks for other
changes; where they meet the driver differs from run to run anyhow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_program import compiled
from rocelab.testbed.node.prepare_node import unload
from veth_pair import Pair, veth_pair
from vmlab import PATIENCE, boot_alone, healthy

SOURCE = Path(__file__).parent / "verbs_hostile.c"
SEED = int(os.environ.get("ROCELAB_HOSTILE_SEED", "20261122"))
REQUESTS = 20_000
SECONDS = 15
"""Limits of one kind of change, whichever comes first."""
CHANGES = ("av", "wqe", "recv", "ring", "all")
_LISTEN = ("tcpdump", "-i", "veth_a", "-p", "-w", "/dev/null")
ORDINARY = (("rc", "write"), ("rc", "read"), ("srq", "send"), ("ud", "send"))


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two devices on a machine of its own, somebody listening; in the end all of it goes away."""
    with boot_alone(name="hostile", vcpus=2) as machine, healthy([machine], "hostile user"):
        with veth_pair(machine, roce_v1=True) as pair:
            listener = machine.start(_LISTEN)
            try:
                listener.wait_for_line("listening on", timeout=60 * PATIENCE)
                yield pair
            finally:
                listener.kill()
        unload(machine)


@pytest.mark.parametrize("changes", CHANGES)
def test_changes_under_the_driver(pair: Pair, changes: str) -> None:
    """Requests are completed, refused or fail, and traffic of others works as before."""
    program = compiled(pair.node, SOURCE, "-libverbs", "-pthread")
    with healthy([pair.node], changes):
        done = pair.node.run(
            [program, "rxe_a", "rxe_b", changes, str(REQUESTS), str(SECONDS), str(SEED)],
            timeout=SECONDS + 120 * PATIENCE,
        )
        found = re.fullmatch(r"requests=(\d+) resets=(\d+)\n", done.stdout)
        assert found, done.stdout
        assert int(found[1]) > 500
        for transport, operation in ORDINARY:
            pair.loop(transport, operation, 1000, 4)
