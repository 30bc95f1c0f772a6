# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture on a node itself with linktap (AF_PACKET), where nothing outside the node can."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.testbed.interface import Captured
from rocelab.testbed.node import Node

TAP = "linktap"
"""The capturing program; built from ebpf/linktap."""
MAX_BYTES = 512 << 20
"""A capture's file grows up to this; later frames are counted where they are captured."""
_START_TIMEOUT = 60
_STOP_TIMEOUT = 60
_LOST = re.compile(r"\b(\d{1,10}) frames were lost\b")


@contextmanager
def capture(
    machine: Node, netdevs: Sequence[str], path: Path, snaplen: int, *, arriving: bool = False
) -> Iterator[Captured]:
    """Capture every frame that crosses the link while the context lasts into the pcap `path`.

    Given both ends of a veth pair, linktap captures frames where they arrive. Given one interface,
    it captures both directions, or with `arriving` only what the interface receives. We do not use
    tcpdump(8): when stopped, it drops the packets that it has not read yet, and does not count
    them. Frames that it had to drop are counted in what this yields, and so are those beyond
    `MAX_BYTES`. Raises TestbedError when the capture does not start or is not complete for another
    reason.
    """
    root = machine.root
    remote = root.run(["mktemp", "-t", "rocelab-wire-XXXXXX.pcap"]).stdout.strip()
    direction = ("-Q", "in") if arriving else ()
    bounds = ("-s", str(snaplen), "-C", str(MAX_BYTES))
    process = root.start((TAP, "-w", remote, *bounds, *direction, *netdevs))
    try:
        process.wait_for_line(f"{TAP}: listening", timeout=_START_TIMEOUT)
        captured = Captured()
        yield captured
        # linktap writes what is still queued before it ends
        process.interrupt()
        done = process.wait(timeout=_STOP_TIMEOUT)
        if lost := _LOST.search(done.stderr):
            captured.lost = int(lost[1])
        elif done.returncode:
            raise TestbedError(
                f"the capture on {root.name} is not complete",
                cause=done.stderr.strip()[-500:],
                action=f"On {machine.name}: look at the free space in /tmp, and at `ip link`.",
            )
        captured.beyond.append(done.stdout)
        root.get(remote, path)
    finally:
        process.kill()
        root.run(["rm", "-f", remote], check=False)
