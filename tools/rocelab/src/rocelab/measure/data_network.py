# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether hosts reach each other by their data interfaces, and with which packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

from rocelab.errors import TestbedError
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once

_HEADERS = 28
"""Of IPv4 and ICMP, in bytes."""
_NO_PING = 127
"""The status of a shell that does not find a program."""
_NOTHING, _ONLY_SMALL = "nothing", "only small ones"
# Prints what gets through to the addresses that packets of `size` bytes do not get to. With -w,
# ping sends until a packet is answered.
_PING = f"""
netdev=$1 size=$2
shift 2
command -v ping >/dev/null || exit {_NO_PING}
answers() {{ ping -q -n -c 1 -i 0.5 -w 3 -M do -I "$netdev" -s "$1" "$2" >/dev/null 2>&1; }}
for address; do
	{{ answers "$size" "$address" || {{
		answers 56 "$address" && echo "{_ONLY_SMALL} $address" || echo "{_NOTHING} $address"
	}} }} &
done
wait
"""


class Pings:
    """Which packets get from each node to each other by their data interfaces."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._lock = Lock()
        self._found: list[str] | None = None

    def _ask(self) -> list[str]:
        """Return what each node prints (`_PING`). Raises TestbedError if one has no ping(8)."""

        def one(node: Node) -> str:
            others = [other.link.ipv4 for other in self._nodes if other is not node]
            size = str(node.link.mtu - _HEADERS)
            by = node.root if node.has_root else node
            done = by.run(("sh", "-c", _PING, "sh", node.link.netdev, size, *others), check=False)
            if done.returncode == _NO_PING:
                raise TestbedError(
                    f"{node.name} has no ping",
                    cause="without it, nothing says whether the data network carries packets",
                    action=f"On {node.name}: `apt-get install iputils-ping`.",
                )
            return done.stdout

        return at_once(one, self._nodes)

    def _without(self, answer: str, answers: Sequence[str]) -> Iterator[tuple[Node, Node]]:
        for node, printed in zip(self._nodes, answers, strict=True):
            silent = printed.splitlines()
            yield from (
                (node, other) for other in self._nodes if f"{answer} {other.link.ipv4}" in silent
            )

    def data_network(self) -> str:
        """Each host reaches each other by its data interface."""
        with self._lock:
            self._found = self._ask()
        for node, other in self._without(_NOTHING, self._found):
            raise TestbedError(
                f"{node.name} gets no answer from {other.name} at {other.link.ipv4} "
                f"by {node.link.netdev}",
                cause="another cable or VLAN, addresses of different networks, or a firewall",
                action=f"On {node.name}: `ping -I {node.link.netdev} {other.link.ipv4}`, and "
                f"compare `ip addr show {node.link.netdev}` with {other.name}'s "
                f"`{other.link.netdev}`.",
            )
        return ", ".join(f"{node.name} {node.link.ipv4}" for node in self._nodes)

    def mtu_end_to_end(self) -> str:
        """Packets as large as each interface sends arrive whole; asks only if nobody has."""
        with self._lock:
            answers = self._found if self._found is not None else self._ask()
        for answer in (_ONLY_SMALL, _NOTHING):
            for node, other in self._without(answer, answers):
                raise TestbedError(
                    f"packets of {node.link.mtu} bytes do not get from {node.name} to {other.name}",
                    cause=f"{other.name} has an MTU of {other.link.mtu}, or a switch between them "
                    "has a smaller one",
                    action=f"Raise it there, or on each host: `ip link set {node.link.netdev} mtu "
                    f"{min(other.link.mtu for other in self._nodes)}`, or smaller.",
                )
        return f"{min(node.link.mtu for node in self._nodes)} bytes"
