# SPDX-License-Identifier: GPL-2.0-or-later
"""A local user changes mapped work queues while the driver uses them: the kernel log stays clean.

Two processors, since the changes race with the driver. A packet socket is open on the link, because
it follows what packets claim about their headers. ROCELAB_HOSTILE_SEED selects other changes; their
timing differs in every run.
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
"""Limits for one kind of change; the first one reached applies."""
CHANGES = ("av", "wqe", "recv", "ring", "all")
_LISTEN = ("tcpdump", "-i", "veth_a", "-p", "-w", "/dev/null")
ORDINARY = (("rc", "write"), ("rc", "read"), ("srq", "send"), ("ud", "send"))


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two devices on one machine, with a listening socket; at the end all can be removed."""
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
    """Requests complete, are refused or fail; other traffic keeps working."""
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
