# SPDX-License-Identifier: GPL-2.0-or-later
"""What a benchmark needs to know of a node's end of a transport: device, port and GID."""

from __future__ import annotations

from rocelab.errors import CellError
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.benchmarks.tool import End
from rocelab.plans.catalog import Transport
from rocelab.testbed import gid
from rocelab.testbed.node import Node
from rocelab.testbed.verbs_ports import Ports, VerbsPort, check_kind

_ARPHRD_INFINIBAND = "32"
"""As in /sys/class/net/*/type (linux/if_arp.h)."""


def end(node: Node, ports: Ports, transport: Transport) -> End:
    """Return the node's end of a benchmark over `transport`; `ports` come from `find`.

    Raises CellError when the node lacks the device or a GID of the transport's type, or when the
    device or the interface is of another kind.
    """
    if transport.family == "tcp":
        _check_interface(node, transport)
        return End(node.link.ipv4, netdev=node.link.netdev)
    port = _port(node, ports, transport)
    if transport.gid_type is None:
        by_cm = transport.is_iwarp
        return End(
            *(node.link.ipv4, port.device, port.port), rdma_cm=by_cm, netdev=node.link.netdev
        )
    chosen = gid.find(node, port.device, port.port, transport.gid_type)
    return End(*(node.link.ipv4, port.device, port.port, chosen.index), netdev=node.link.netdev)


def place(node: Node, ports: Ports, transport: Transport) -> Place:
    """Return what the ranks on a node need to know of its end of the link.

    Raises CellError like `end`.
    """
    if transport.family == "tcp":
        _check_interface(node, transport)
        return Place(node.name, node.link.netdev)
    port = _port(node, ports, transport)
    if transport.gid_type is None:
        return Place(node.name, node.link.netdev, port.device, port.port)
    chosen = gid.find(node, port.device, port.port, transport.gid_type)
    return Place(node.name, node.link.netdev, port.device, port.port, chosen.index)


def _check_interface(node: Node, transport: Transport) -> None:
    """Raise CellError when TCP would cross Ethernet under the name of IPoIB."""
    if transport.link_layer != "InfiniBand":
        return
    netdev = node.link.netdev
    kind = node.run(("cat", f"/sys/class/net/{netdev}/type"), check=False).stdout.strip()
    if kind != _ARPHRD_INFINIBAND:
        raise CellError(
            f"{netdev} on {node.name} is no IPoIB interface",
            cause=f"its type is {kind!a:.10}, and InfiniBand's is {_ARPHRD_INFINIBAND} (if_arp.h)",
            action=f"Name the IPoIB interface in the inventory: transport.{transport.name} = "
            '{ netdev = "ib0" }.',
        )


def _port(node: Node, ports: Ports, transport: Transport) -> VerbsPort:
    """Return the transport's port. Raises CellError if it is missing or of the wrong kind."""
    port = ports.of(transport)
    if port is None:
        raise CellError(
            f"{node.name} has no {'rxe' if transport.is_rxe else 'verbs'} device "
            f"on {node.link.netdev}",
            cause="the rxe link does not exist, or its module is not loaded"
            if transport.is_rxe
            else "its driver is not loaded, or the inventory does not name the device",
            action=f"On {node.name}: look at `rdma link show`.",
        )
    check_kind(node, port, transport)
    # only our build of rdma_rxe has a version
    if transport.by == "adapter" and port == ports.soft:
        version = node.run(("cat", "/sys/module/rdma_rxe/version"), check=False).stdout.strip()
        if version:
            raise CellError(
                f"{port.device} on {node.name} is a Soft RoCE device of the instrumented driver",
                cause=f"{transport.name} is for devices whose driver is not instrumented",
                action="Use rxe-v1 or rxe-v2, or name the adapter's device in the inventory.",
            )
    return port
