# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE traffic of known amount between nodes, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rocelab.testbed import gid
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.prepare_node import DEVICE

MTU = 4096
"""RoCE path MTU in bytes: what a packet carries at most."""
PORT = 18515
"""Where the servers listen."""
# columns of /proc/net/tcp: local address:port, remote address:port, state (0A: listening)
_UNTIL_LISTENING = (
    'until grep -qE ":$1 0+:0000 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done'
)


def gid_index(node: Node, *, gid_type: str = "RoCE v2") -> str:
    """Index of the GID of that type for the node's IPv4 address."""
    return str(gid.find(node, DEVICE, 1, gid_type).index)


@contextmanager
def server(node: Node, argv: list[str], port: int = PORT) -> Iterator[Process]:
    """A server that listens; it is ended with the context."""
    process = node.start(argv)
    try:
        node.run(["timeout", "180", "sh", "-c", _UNTIL_LISTENING, "sh", f"{port:04X}"], timeout=210)
        yield process
    finally:
        process.kill()


def perftest(
    program: str,
    client: Node,
    server_node: Node,
    *,
    size: int,
    iterations: int = 0,
    seconds: int = 0,
    ack_timeout: int = 21,
    gid_type: str = "RoCE v2",
) -> None:
    """Run a perftest program between two nodes, or between a node and itself.

    Either so many iterations, or for so many seconds.

    `ack_timeout` is the queue pairs' local ACK timeout, 4.096 µs times 2^ack_timeout: long by
    default, because an emulated node may be slow, and a retransmission would add packets.
    """
    common = [program, "-d", DEVICE, "-s", str(size), "-m", str(MTU), "-F", "-u", str(ack_timeout)]
    common += ["-D", str(seconds)] if seconds else ["-n", str(iterations)]
    # a program that polls keeps a processor busy, which other tests need
    common += ["-e"] if program.startswith("ib_send_") else []
    with server(server_node, [*common, "-x", gid_index(server_node, gid_type=gid_type)]) as process:
        client.run(
            [*common, "-x", gid_index(client, gid_type=gid_type), server_node.link.ipv4],
            timeout=180 + 2 * seconds,
        )
        assert process.wait(timeout=60).returncode == 0
