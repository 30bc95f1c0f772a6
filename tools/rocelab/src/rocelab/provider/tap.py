# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture on a machine itself, by AF_PACKET (ebpf/linktap): where there is no place outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.node import Node

TAP = "linktap"
"""The program that captures."""
_STARTS_WITHIN = 60
_ENDS_WITHIN = 60


@contextmanager
def capture(
    machine: Node, netdevs: Sequence[str], path: Path, snaplen: int, *, arriving: bool = False
) -> Iterator[None]:
    """Every frame that crosses the link while the context lasts, in the classic pcap `path`.

    Of the two ends of a pair, frames are taken where they arrive; of one interface, what it sends
    and what arrives, or with `arriving` that alone. Not tcpdump(8): what that has not read when it
    is told to end is lost, and not counted. Raises TestbedError when the capture does not start, or
    lost a frame.
    """
    machine = machine.root
    remote = machine.run(["mktemp", "-t", "rocelab-wire-XXXXXX.pcap"]).stdout.strip()
    direction = ("-Q", "in") if arriving else ()
    process = machine.start((TAP, "-w", remote, "-s", str(snaplen), *direction, *netdevs))
    try:
        process.wait_for_line(f"{TAP}: listening", timeout=_STARTS_WITHIN)
        yield
        # what is queued is written before it ends
        process.interrupt()
        done = process.wait(timeout=_ENDS_WITHIN)
        if done.returncode:
            raise TestbedError(
                f"the capture on {machine.name} is not complete",
                cause=done.stderr.strip()[-500:],
                action="fewer or smaller messages in a step, or more memory for the node",
            )
        machine.get(remote, path)
    finally:
        process.kill()
        machine.run(["rm", "-f", remote], check=False)
