# SPDX-License-Identifier: GPL-2.0-or-later
"""The nodes' ends of a transport, for a user's command."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab.plans.benchmarks.tool import End
from rocelab.plans.catalog import Transport
from rocelab.testbed import verbs, verbs_ports
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once


def ends_of(nodes: Sequence[Node], transport: Transport) -> list[End]:
    """Return each node's end of the transport. Raises CellError."""
    if transport.family == "tcp":
        return [End(node.link.ipv4, netdev=node.link.netdev) for node in nodes]
    return at_once(lambda node: verbs.end(node, verbs_ports.find(node), transport), nodes)
