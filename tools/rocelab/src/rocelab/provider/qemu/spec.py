# SPDX-License-Identifier: GPL-2.0-or-later
"""What a virtual testbed consists of, and the QEMU command line of each node: pure functions.

host ── 127.0.0.1:PORT ── ctl (user network, no way out) ── n1 ┐
                                                               data: one lossless
host ── 127.0.0.1:PORT ── ctl (user network, no way out) ── n2 ┘ Unix stream, capturable
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rocelab.node import DataLink

Accelerator = Literal["kvm", "tcg"]

CTL = "ctl0"
DATA = "data0"
_PREFIX = 24


@dataclass(frozen=True)
class NodeSpec:
    """One virtual machine. `index` counts from 1; addresses follow from it."""

    index: int
    ssh_port: int
    memory_mb: int
    mtu: int

    @property
    def name(self) -> str:
        """`n1`, `n2`, …"""
        return f"n{self.index}"

    @property
    def link(self) -> DataLink:
        """The data interface as the guest has it."""
        return DataLink(DATA, f"10.44.0.{self.index}", f"52:54:00:44:00:{self.index:02x}", self.mtu)

    @property
    def ctl_mac(self) -> str:
        """MAC address on the control network."""
        return f"52:54:00:c0:00:{self.index:02x}"

    @property
    def ctl_network(self) -> str:
        """A control network of its own for each node (mpi-cpu.md, trap 5)."""
        return f"172.30.{self.index}"


@dataclass(frozen=True)
class TestbedSpec:
    """A whole testbed, as kept in its state folder."""

    __test__ = False
    name: str
    line: str
    image: str
    accelerator: Accelerator
    nodes: tuple[NodeSpec, ...]

    def to_json(self) -> dict[str, Any]:
        """For the state file."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TestbedSpec:
        """From the state file."""
        nodes = tuple(NodeSpec(**node) for node in data["nodes"])
        return cls(**{**data, "nodes": nodes})


def guest_config(spec: TestbedSpec, node: NodeSpec) -> str:
    """The lines that tools/node/files/usr/lib/rocelab/boot reads."""
    lines = [
        f"hostname {node.name}",
        f"interface {CTL} {node.ctl_mac} {node.ctl_network}.15/{_PREFIX} 1500",
        f"interface {DATA} {node.link.mac} {node.link.ipv4}/{_PREFIX} {node.mtu}",
    ]
    lines += [f"host {other.link.ipv4} {other.name}" for other in spec.nodes]
    return "\n".join(lines) + "\n"


def kernel_command_line() -> str:
    """Same on every node. A panic ends the machine (`-no-reboot`), so that it is noticed."""
    return (
        "console=ttyS0 loglevel=5 panic=-1 oops=panic net.ifnames=0 random.trust_cpu=on "
        "no_timer_check tsc=reliable cryptomgr.notests"
    )


def qemu_argv(spec: TestbedSpec, node: NodeSpec, state: Path) -> list[str]:
    """Command line of one node; `state` is the testbed's folder."""
    image = Path(spec.image)
    side = "on" if node.index == 1 else "off"
    cpu = "host" if spec.accelerator == "kvm" else "max"
    fw_cfg = {
        "node": state / f"{node.name}.conf",
        "host_key": state / "host_key",
        "authorized_keys": state / "id_ed25519.pub",
    }
    argv = [
        "qemu-system-x86_64",
        *("-name", f"rocelab-{spec.name}-{node.name}"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-machine", f"q35,accel={spec.accelerator}", "-cpu", cpu),
        *("-smp", "1", "-m", str(node.memory_mb)),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initramfs.cpio")),
        *("-append", kernel_command_line()),
        *("-drive", f"if=none,id=image,format=raw,readonly=on,file={_escape(image)}/root.sqfs"),
        *("-device", "virtio-blk-pci,drive=image"),
        *("-serial", f"file:{state / node.name}.console"),
        *("-qmp", f"unix:{_escape(state / node.name)}.qmp,server=on,wait=off"),
        *(
            "-netdev",
            f"user,id=ctl,restrict=on,ipv6=off,net={node.ctl_network}.0/{_PREFIX},"
            f"hostfwd=tcp:127.0.0.1:{node.ssh_port}-{node.ctl_network}.15:22",
        ),
        *("-device", f"virtio-net-pci,netdev=ctl,mac={node.ctl_mac}"),
        *(
            "-netdev",
            f"stream,id=data,server={side},addr.type=unix,addr.path={_escape(state)}/data.sock",
        ),
        *("-device", f"virtio-net-pci,netdev=data,mac={node.link.mac},host_mtu={node.mtu}"),
    ]
    for key, path in fw_cfg.items():
        argv += ["-fw_cfg", f"name=opt/rocelab/{key},file={_escape(path)}"]
    return argv


def _escape(path: Path) -> str:
    """QEMU option values double their commas."""
    return str(path).replace(",", ",,")
