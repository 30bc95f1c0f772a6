# SPDX-License-Identifier: GPL-2.0-or-later
"""Which port a transport gets, on hosts with the adapters that people have.

The trees are made after the drivers' source (Linux 6.12): no such adapter was at hand.
"""

from __future__ import annotations

import pytest

from fake_outputs import several
from rocelab.errors import CellError
from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed import verbs_ports
from rocelab.testbed.node import Completed, DataLink
from rocelab.testbed.verbs_ports import Ports, Sysfs, VerbsPort

# device, port, node type, link layer, interface in `rdma link`, interfaces of its GIDs
Tree = tuple[tuple[str, int, str, str, str, tuple[str, ...]], ...]

CA, RNIC, UNSPECIFIED = "1: CA", "4: RNIC", "6: unspecified"
MLX5_BOTH: Tree = (
    ("mlx5_0", 1, CA, "InfiniBand", "", ()),
    ("mlx5_1", 1, CA, "Ethernet", "enp3s0f1", ("enp3s0f1", "enp3s0f1.7")),
)
# the members' netdev for `rdma link`, the bond's for GIDs
MLX5_LAG: Tree = (("mlx5_bond_0", 1, CA, "Ethernet", "enp3s0f0", ("bond0",)),)
MLX4: Tree = (
    ("mlx4_0", 1, CA, "InfiniBand", "", ()),
    ("mlx4_0", 2, CA, "Ethernet", "ens6d1", ("ens6d1",)),
)
BNXT: Tree = (("bnxt_re0", 1, CA, "Ethernet", "enp65s0f0np0", ("enp65s0f0np0",)),)
IRDMA: Tree = (
    ("rocep24s0f0", 1, CA, "Ethernet", "ens1f0", ("ens1f0",)),
    ("iwp24s0f1", 1, RNIC, "Ethernet", "ens1f1", ("ens1f1",)),
)
EFA: Tree = (("efa_0", 1, UNSPECIFIED, "Unspecified", "", ()),)
SIW: Tree = (("siw0", 1, RNIC, "Ethernet", "eth1", ()),)


def choose(tree: Tree, netdev: str, device: str = "", port: int = 0, soft: str = "") -> Ports:
    lines = [f"{soft}/parent:{netdev}", f"{soft}/ports/1/link_layer:Ethernet"] if soft else []
    links = {(soft, 1): netdev} if soft else {}
    for name, number, node_type, link_layer, interface, netdevs in tree:
        links[name, number] = interface
        lines += [f"{name}/node_type:{node_type}", f"{name}/ports/{number}/link_layer:{link_layer}"]
        base = f"{name}/ports/{number}/gid_attrs/ndevs"
        lines += [f"{base}/{i}:{each}" for i, each in enumerate(netdevs)]
    sysfs = Sysfs.parse("\n".join(lines))
    return verbs_ports.choose(links, sysfs, netdev, device=device, port=port)


@pytest.mark.parametrize(
    ("tree", "netdev", "device", "port", "transport", "expected"),
    [
        (MLX5_BOTH, "enp3s0f1", "", 0, "hw-v2", ("mlx5_1", 1)),
        (MLX5_BOTH, "enp3s0f1.7", "", 0, "hw-v2", ("mlx5_1", 1)),
        (MLX5_BOTH, "ib0", "mlx5_0", 0, "ib", ("mlx5_0", 1)),
        (MLX5_BOTH, "ib0", "", 0, "ib", None),
        (MLX5_BOTH, "enp3s0f1", "mlx5_9", 0, "hw-v2", None),
        (MLX5_LAG, "bond0", "", 0, "hw-v2", ("mlx5_bond_0", 1)),
        (MLX4, "ens6d1", "", 0, "hw-v1", ("mlx4_0", 2)),
        (MLX4, "ens6d1", "mlx4_0", 0, "hw-v1", ("mlx4_0", 2)),
        (MLX4, "ens6d1", "mlx4_0", 0, "ib", ("mlx4_0", 1)),
        (MLX4, "ib0", "mlx4_0", 2, "hw-v2", ("mlx4_0", 2)),
        (BNXT, "enp65s0f0np0", "", 0, "hw-v2", ("bnxt_re0", 1)),
        (IRDMA, "ens1f0", "", 0, "hw-v2", ("rocep24s0f0", 1)),
        (IRDMA, "ens1f1", "", 0, "iwarp", ("iwp24s0f1", 1)),
        (SIW, "eth1", "", 0, "iwarp", ("siw0", 1)),
    ],
)
def test_the_port_of_a_transport(
    tree: Tree, netdev: str, device: str, port: int, transport: str, expected: object
) -> None:
    selected = choose(tree, netdev, device, port).of(TRANSPORTS[transport])
    assert (selected and (selected.device, selected.port)) == expected
    if selected:
        verbs_ports.check_kind(NODE, selected, TRANSPORTS[transport])


class Node:
    """A node that answers with these listings."""

    name = "n1"
    link = DataLink("eth1", "10.0.0.1", "02:00:00:00:00:01", 9000)

    def __init__(self, links: str = "[]", sysfs: str = "") -> None:
        self.said = {verbs_ports.LINKS: links, verbs_ports.SYSFS: sysfs}

    def run(self, argv: tuple[str, ...], **_: object) -> Completed:
        both = several(argv, self.said.__getitem__)
        assert both is not None, argv
        return Completed(argv, 0, both, "")


NODE = Node()  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("tree", "netdev", "device", "transport", "says"),
    [
        (MLX5_BOTH, "enp3s0f1", "", "ib", "link layer is Ethernet, not InfiniBand"),
        (MLX5_BOTH, "enp3s0f1", "mlx5_0", "hw-v2", "link layer is InfiniBand, not Ethernet"),
        (IRDMA, "ens1f1", "", "hw-v1", "link layer is iWARP, not Ethernet"),
        (SIW, "eth1", "", "hw-v2", "link layer is iWARP, not Ethernet"),
        (IRDMA, "ens1f0", "", "iwarp", "link layer is Ethernet, not iWARP"),
        (MLX5_BOTH, "enp3s0f1", "mlx5_0", "iwarp", "link layer is InfiniBand, not iWARP"),
        (EFA, "ens5", "efa_0", "hw-v2", "link layer is Unspecified, not Ethernet"),
        (EFA, "ens5", "efa_0", "ib", "link layer is Unspecified, not InfiniBand"),
    ],
)
def test_a_port_of_another_kind_is_refused(
    tree: Tree, netdev: str, device: str, transport: str, says: str
) -> None:
    selected = choose(tree, netdev, device).of(TRANSPORTS[transport])
    assert selected is not None
    with pytest.raises(CellError, match=says) as caught:
        verbs_ports.check_kind(NODE, selected, TRANSPORTS[transport])
    assert f"transport.{transport} = " in caught.value.action


def test_rxe_next_to_an_adapter() -> None:
    """rxe's port is not the adapter's, and an adapter that is named is taken alone."""
    ports = choose(MLX5_BOTH, "enp3s0f1", soft="rxe0")
    assert ports == Ports(VerbsPort("rxe0", 1), (VerbsPort("mlx5_1", 1),))
    assert choose(MLX5_BOTH, "enp3s0f1", "mlx5_7", soft="rxe0").adapters == ()
    assert choose((), "eth1", soft="rxe0").adapters == (VerbsPort("rxe0", 1),)


def test_hostile_names_are_skipped() -> None:
    links = '[{"ifname": "../x", "port": 1, "netdev": "eth1"}, {"ifname": "a b", "port": 1}, 7]'
    sysfs = "../x/parent:eth1\nmlx5_0/ports/1/link_layer:Ethernet; reboot\n"
    assert verbs_ports.find(Node(links, sysfs)) == Ports()  # type: ignore[arg-type]
    assert Sysfs.parse(sysfs) == Sysfs(frozenset(), {}, {})
    assert verbs_ports.find(Node("{}")) == Ports()  # type: ignore[arg-type]
