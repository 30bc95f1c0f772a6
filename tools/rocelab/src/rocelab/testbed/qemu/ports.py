# SPDX-License-Identifier: GPL-2.0-or-later
"""Ports on the loopback address, for the SSH of virtual machines."""

from __future__ import annotations

import socket

from rocelab.errors import TestbedError


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def choose(count: int, first: int | None) -> list[int]:
    """Return ports on 127.0.0.1 for SSH: consecutive ones from `first`, or any free ones."""
    if first is None:
        probes = [socket.socket() for _ in range(count)]
        try:
            for probe in probes:
                probe.bind(("127.0.0.1", 0))
            return [int(probe.getsockname()[1]) for probe in probes]
        finally:
            for probe in probes:
                probe.close()
    ports = list(range(first, first + count))
    for port in ports:
        if not _is_free(port):
            raise TestbedError(
                f"port {port} on 127.0.0.1 is in use",
                cause="another program or another testbed listens on it",
                action="Choose another with --ssh-port, or omit the option to get free ports.",
            )
    return ports
