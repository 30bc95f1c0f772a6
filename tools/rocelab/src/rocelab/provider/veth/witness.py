# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture the pair (AF_PACKET, ebpf/vethtap) on the machine of both ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.node import Node
from rocelab.provider.veth import layout

_STARTS_WITHIN = 60
_ENDS_WITHIN = 60


@contextmanager
def capture(machine: Node, path: Path, snaplen: int) -> Iterator[None]:
    """Every frame that crosses the pair while the context lasts, in the classic pcap `path`.

    Raises TestbedError when the capture does not start, or lost a frame.
    """
    remote = machine.run(["mktemp", "-t", "rocelab-wire-XXXXXX.pcap"]).stdout.strip()
    process = machine.start(layout.capture(remote, snaplen))
    try:
        process.wait_for_line("vethtap: listening", timeout=_STARTS_WITHIN)
        yield
        # what is queued is written before it ends
        process.interrupt()
        done = process.wait(timeout=_ENDS_WITHIN)
        if done.returncode:
            raise TestbedError(
                "the capture of the veth pair is not complete",
                cause=done.stderr.strip()[-500:],
                action="fewer or smaller messages in a step, or more memory for the node",
            )
        machine.get(remote, path)
    finally:
        process.kill()
        machine.run(["rm", "-f", remote], check=False)
