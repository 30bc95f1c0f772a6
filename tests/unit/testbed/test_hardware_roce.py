# SPDX-License-Identifier: GPL-2.0-or-later
"""Soft RoCE is refused where an adapter takes UDP port 4791 for itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from fake_outputs import several
from rocelab.errors import TestbedError
from rocelab.testbed import verbs_ports
from rocelab.testbed.node import Completed, DataLink
from rocelab.testbed.ssh import hardware_roce
from rocelab.testbed.ssh.hardware_roce import Function

SYSFS = """\
mlx5_0/node_type:1: CA
mlx5_0/ports/1/link_layer:Ethernet
mlx5_0/ports/1/gid_attrs/ndevs/0:enp3s0f0np0
rxe0/parent:enp3s0f0np0
rxe0/ports/1/link_layer:Ethernet
"""
LINKS = json.dumps([{"ifname": n, "port": 1, "netdev": "enp3s0f0np0"} for n in ("mlx5_0", "rxe0")])
BASE = "/sys/class/infiniband/mlx5_0/ports/1"
GIDS = f"{BASE}/gids/1:::ffff:10.0.0.1\n{BASE}/gid_attrs/types/1:RoCE v2\n"


def parameter(value: bool, handle: str = "pci/0000:03:00.0") -> str:
    """As `devlink -j dev param show` of iproute2 6.15 prints it."""
    each = {"name": "enable_roce", "type": "generic"}
    return json.dumps(
        {"param": {handle: [{**each, "values": [{"cmode": "driverinit", "value": value}]}]}}
    )


class Host:
    """A host that answers as one with mlx5 does."""

    name = "n1"
    link = DataLink("enp3s0f0np0", "10.0.0.1", "02:00:00:00:00:01", 1500)

    def __init__(
        self, functions: str = "", gids: str = GIDS, devlink: str = parameter(True)
    ) -> None:
        self.functions = functions or "enp3s0f0np0 pci/0000:03:00.0 mlx5_core\n"
        self.gids, self.devlink = gids, devlink

    @property
    def root(self) -> Host:
        return self

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        argv = tuple(argv)
        if argv == (*hardware_roce.FUNCTIONS, self.link.netdev):
            said = self.functions
        elif (both := several(argv, lambda one: self.run(one).stdout)) is not None:
            said = both
        elif argv == verbs_ports.LINKS:
            said = LINKS
        elif argv == verbs_ports.SYSFS:
            said = SYSFS
        elif argv[0] == "devlink":
            said = self.devlink
        else:
            said = self.gids if BASE in argv[-1] else ""
        return Completed(argv, 0 if said else 1, said, "")


def refused(host: Host) -> TestbedError:
    with pytest.raises(TestbedError, match=r"rxe on enp3s0f0np0 of n1 would receive") as caught:
        hardware_roce.refuse(host)  # type: ignore[arg-type]
    return caught.value


SET = "devlink dev param set pci/0000:03:00.0 name enable_roce value false cmode driverinit"
RELOAD = "devlink dev reload pci/0000:03:00.0"


def test_the_command_that_switches_it_off_is_named() -> None:
    assert f"`{SET} && {RELOAD}`" in refused(Host()).action
    assert f"`{SET} && {RELOAD}`" in refused(Host(devlink="")).action


def test_switched_off_but_not_reloaded() -> None:
    action = refused(Host(devlink=parameter(False))).action
    assert f"`{RELOAD}`" in action
    assert SET not in action


def test_both_members_of_a_bond_are_named() -> None:
    below = "".join(f"enp3s0f{i}np{i} pci/0000:03:00.{i} mlx5_core\n" for i in (0, 1))
    assert refused(Host(below)).action.count("devlink dev reload") == 2


@pytest.mark.parametrize(
    "host",
    [
        Host(gids=""),
        Host(gids=GIDS.replace("RoCE v2", "IB/RoCE v1")),
        Host("enp3s0f0np0 virtio/virtio2 virtio_net\n"),
        Host("hostile; reboot pci/x\n"),
    ],
)
def test_others_are_let_through(host: Host) -> None:
    """RoCE is off where there are no GIDs, or the adapter is another."""
    hardware_roce.refuse(host)  # type: ignore[arg-type]


def test_functions_are_parsed() -> None:
    line = "eth1 auxiliary/mlx5_core.sf.4 mlx5_core\n$(reboot) pci/1 x\n"
    assert hardware_roce.functions(line) == (
        Function("eth1", "auxiliary/mlx5_core.sf.4", "mlx5_core"),
    )
    for text in ("", "[]", '{"param": 7}', '{"param": {"pci/1": [{"values": 3}]}}'):
        assert not hardware_roce.is_switched_off(text)
