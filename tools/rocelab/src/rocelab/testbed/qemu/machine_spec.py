# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of a virtual testbed, and the QEMU command line of each. Pure functions.

Two machines, one node each (provider `qemu`):

host ── 127.0.0.1:PORT ── ctl (user network, no way out) ── n1 ┐
                                                               data: one lossless
host ── 127.0.0.1:PORT ── ctl (user network, no way out) ── n2 ┘ Unix stream, capturable

                             n1 ── peer: another stream ── n2   connects MPI's daemons

Of these, the first can also run alone (`NOBODY`).

With switches, or more than two nodes, an additional machine has a stream to each node, and a chain
of bridges between them. Another bridge connects the `peer` streams:

n1 ── data1 ┐ switch ┌ data2 ── n2
                     └ data3 ── n3

One machine that contains all ends (provider `veth`), without a QEMU data link:

host ── 127.0.0.1:PORT ── ctl (user network, no way out) ── n1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rocelab import accelerators
from rocelab.plans.catalog import Provider
from rocelab.testbed.node import DataLink

CTL = "ctl0"
DATA = "data0"
PEER = "peer0"
"""The interface on the control network between the nodes: it never carries benchmark traffic."""
PEER_NETWORK = "172.31.0.0/24"
_PREFIX = 24
LOCKSTEP = "lockstep"
"""The file in the state folder that the machines in lockstep share."""
CHANNEL = "channel"
"""Suffix of the socket of a machine's second serial port, by which it learns who it is."""
_TIMED = ",tx=timer,x-txtimer=100,ioeventfd=off"
"""A card that sends a frame, and interrupts, 100 ns of virtual time after the guest asks it to.
Later, the interrupt would be in the first stage of the next packet."""
NOBODY = ""
"""At the other end of the links of a node that is alone: it is the first of a pair otherwise."""
MEMORY_MB = 1024
"""Memory of a node: enough for bpftrace and pyverbs."""


@dataclass(frozen=True)
class NodeSpec:
    """One virtual machine. `index` counts from 1; addresses follow from it."""

    index: int
    ssh_port: int
    memory_mb: int
    mtu: int
    is_switch: bool = False
    image: str = ""
    """Folder of the machine's image if it is not the testbed's, for another kernel line."""
    snapshot: str = ""
    """File that the machine is restored from; empty: it boots."""

    @property
    def name(self) -> str:
        """`n1`, `n2`, …; or `switch`."""
        return "switch" if self.is_switch else f"n{self.index}"

    @property
    def link(self) -> DataLink:
        """The data interface in the guest."""
        return DataLink(DATA, f"10.44.0.{self.index}", f"52:54:00:44:00:{self.index:02x}", self.mtu)

    @property
    def ctl_mac(self) -> str:
        """MAC address on the control network."""
        return f"52:54:00:c0:00:{self.index:02x}"

    @property
    def peer_mac(self) -> str:
        """MAC address on the control network between the nodes."""
        return f"52:54:00:c1:00:{self.index:02x}"

    @property
    def peer_ipv4(self) -> str:
        """Address on the control network between the nodes."""
        return f"{PEER_NETWORK.removesuffix('0/24')}{self.index}"

    @property
    def ctl_network(self) -> str:
        """The node's own control network.

        If nodes had the same address on it, Open MPI's daemons would take another node's address
        for their own, and hang.
        """
        return f"172.30.{self.index}"


@dataclass(frozen=True)
class TestbedSpec:
    """A whole testbed, as stored in its state folder."""

    __test__ = False
    name: str
    line: str
    image: str
    accelerator: accelerators.Name
    nodes: tuple[NodeSpec, ...]
    """The machines that are nodes: for provider `veth`, one that contains all ends."""
    provider: Provider = Provider.QEMU
    ends: int = 2
    """Number of nodes, as benchmarks see them."""
    switches: int = 0
    """Switches between the first node and the others."""
    switch: NodeSpec | None = None
    """The machine that contains all switches (provider `qemu`)."""
    processors: int | None = None
    """Number per machine; None: the best number for measuring."""
    lockstep: str = ""
    """QEMU's plugin that keeps two machines on one clock; empty: each has its own."""
    kernel_parameters: str = ""
    """More kernel parameters, which emulation asks for (rocelab.testbed.qemu.qemu_version)."""
    packages: tuple[str, ...] = ()
    """What the image has in addition to that of its line (rocelab.testbed.package_image)."""

    @property
    def machines(self) -> tuple[NodeSpec, ...]:
        """All machines."""
        return (self.switch, *self.nodes) if self.switch else self.nodes

    @property
    def vcpus(self) -> int:
        """Number of processors of a machine.

        One under emulation: with several processors in separate threads, QEMU 7.2 panics when
        tracepoints are switched on or off under traffic. With KVM, a pair gets three: one for each
        end and one for the driver's work queue.
        """
        if self.processors is not None:
            return self.processors
        known = accelerators.of(self.accelerator)
        return known.veth_processors if self.provider == Provider.VETH else 1

    def to_json(self) -> dict[str, Any]:
        """Return the content of the state file."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TestbedSpec:
        """Build the spec from the state file's content."""
        nodes = tuple(NodeSpec(**node) for node in data["nodes"])
        switch = NodeSpec(**data["switch"]) if data["switch"] else None
        packages = tuple(data["packages"])
        return cls(**{**data, "nodes": nodes, "switch": switch, "packages": packages})


def port_mac(node: NodeSpec) -> str:
    """Return the MAC address of the switch's port to a node on the data link."""
    return f"52:54:00:44:01:{node.index:02x}"


def peer_port_mac(node: NodeSpec) -> str:
    """Return the MAC address of the switch's port to a node on the control network."""
    return f"52:54:00:c1:01:{node.index:02x}"


def interfaces(spec: TestbedSpec, node: NodeSpec) -> str:
    """Return what tools/node/files/usr/lib/rocelab/boot reads: an interface a line."""
    lines = [f"{CTL} {node.ctl_mac} {node.ctl_network}.15/{_PREFIX} 1500"]
    if spec.provider == Provider.QEMU and not node.is_switch:
        lines += [f"{DATA} {node.link.mac} {node.link.ipv4}/{_PREFIX} {node.mtu}"]
        lines += [f"{PEER} {node.peer_mac} {node.peer_ipv4}/{_PREFIX} 1500"]
    return "\n".join(lines) + "\n"


def host_names(spec: TestbedSpec) -> dict[str, str]:
    """Return the nodes' addresses on the data link by name; empty if they share a machine."""
    if spec.provider == Provider.VETH:
        return {}
    return {node.name: node.link.ipv4 for node in spec.nodes}


def kernel_command_line(more: str = "") -> str:
    """Return the kernel command line of every node. A panic ends the machine (`-no-reboot`)."""
    return (
        "console=ttyS0 loglevel=5 panic=-1 oops=panic net.ifnames=0 random.trust_cpu=on "
        f"no_timer_check tsc=reliable cryptomgr.notests {more}"
    ).rstrip()


def qemu_argv(
    spec: TestbedSpec,
    node: NodeSpec,
    state: Path,
    ends: Mapping[str, int],
    snapshot: int | None = None,
) -> list[str]:
    """Return the command line of one machine.

    `state` is the testbed's folder; `ends` has the descriptor of each of the machine's ends of
    streams, by QEMU's name for the netdev. A machine that is restored reads the descriptor
    `snapshot`, and then stands still.
    """
    image = Path(node.image or spec.image)
    accelerator = accelerators.of(spec.accelerator)
    return [
        "qemu-system-x86_64",
        *(_lockstep(spec, node, state) if spec.lockstep else ()),
        *("-name", f"rocelab-{spec.name}-{node.name}"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-machine", "q35", "-cpu", accelerator.cpu, *accelerator.qemu),
        *("-smp", str(spec.vcpus), "-m", str(node.memory_mb)),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initramfs.cpio")),
        *("-append", kernel_command_line(spec.kernel_parameters)),
        *("-drive", f"if=none,id=image,format=raw,readonly=on,file={_escape(image)}/root.sqfs"),
        *("-device", "virtio-blk-pci,drive=image"),
        *("-serial", f"file:{state / node.name}.console"),
        *("-serial", f"unix:{_escape(state / node.name)}.{CHANNEL},server=on,wait=off"),
        *("-qmp", f"unix:{_escape(state / node.name)}.qmp,server=on,wait=off"),
        *(
            "-netdev",
            f"user,id=ctl,restrict=on,ipv6=off,net={node.ctl_network}.0/{_PREFIX},"
            f"hostfwd=tcp:127.0.0.1:{node.ssh_port}-{node.ctl_network}.15:22",
        ),
        *("-device", f"virtio-net-pci,netdev=ctl,mac={node.ctl_mac}"),
        *(_links(spec, node, state, ends) if spec.provider == Provider.QEMU else ()),
        *("-fw_cfg", f"name=opt/rocelab/interfaces,string={_escape(interfaces(spec, node))}"),
        *(("-S", "-incoming", f"fd:{snapshot}") if snapshot is not None else ()),
    ]


class Stream(NamedTuple):
    """A link between two machines; each end is a machine's name and QEMU's name for its netdev."""

    first: tuple[str, str]
    second: tuple[str, str]


def streams(spec: TestbedSpec) -> tuple[Stream, ...]:
    """Return the links between machines: from node to node, or from each node to the switch."""
    if spec.provider != Provider.QEMU:
        return ()
    if spec.switch:
        center = spec.switch.name
        return tuple(
            Stream((center, at_switch), (node.name, at_node))
            for node in spec.nodes
            for at_switch, at_node in ((data_netdev(node), "data"), (f"peer{node.index}", "peer"))
        )
    names = ["peer"] if spec.lockstep else ["data", "peer"]
    first, other = spec.nodes[0], spec.nodes[1].name if len(spec.nodes) > 1 else NOBODY
    return tuple(Stream((first.name, name), (other, name)) for name in names)


def data_netdev(node: NodeSpec) -> str:
    """Return QEMU's name for the switch's end of a node's data link."""
    return f"data{node.index}"


def _links(
    spec: TestbedSpec, node: NodeSpec, state: Path, ends: Mapping[str, int]
) -> Iterator[str]:
    """Yield the options for a machine's cards on its streams."""
    if node.is_switch:
        for other in spec.nodes:
            data, peer = data_netdev(other), f"peer{other.index}"
            yield from _descriptor_option(data, ends[data])
            yield from _card(data, port_mac(other), node.mtu)
            yield from _descriptor_option(peer, ends[peer])
            yield from _card(peer, peer_port_mac(other))
        return
    if spec.lockstep:
        # Sent by a timer, and so at the same virtual time in every run; to the plugin, which the
        # other machine's plugin gives it to.
        address = f"addr.type=unix,addr.path={_escape(_plugins_end(node, state))}"
        yield from ("-netdev", f"stream,id=data,server=on,{address}")
        yield from _card("data", node.link.mac, node.mtu, _TIMED)
    else:
        yield from _descriptor_option("data", ends["data"])
        yield from _card("data", node.link.mac, node.mtu)
    yield from _descriptor_option("peer", ends["peer"])
    yield from _card("peer", node.peer_mac)


def _lockstep(spec: TestbedSpec, node: NodeSpec, state: Path) -> tuple[str, ...]:
    words = {
        "file": spec.lockstep,
        "end": node.index,
        "quantum": accelerators.QUANTUM_NS,
        "shared": state / LOCKSTEP,
        "stream": _plugins_end(node, state),
    }
    return ("-plugin", ",".join(f"{key}={_escape(Path(str(words[key])))}" for key in words))


def _plugins_end(node: NodeSpec, state: Path) -> Path:
    return state / f"data{node.index}.sock"


def _descriptor_option(name: str, descriptor: int) -> tuple[str, str]:
    """Return a netdev on one end of a socket pair.

    QEMU 7.2 makes it non-blocking, as it does not make the connections that it accepts: a machine
    would stand still while the other one does not receive.
    """
    return ("-netdev", f"stream,id={name},server=off,addr.type=fd,addr.str={descriptor}")


def _card(name: str, mac: str, mtu: int | None = None, more: str = "") -> tuple[str, str]:
    size = f",host_mtu={mtu}" if mtu else ""
    return ("-device", f"virtio-net-pci,netdev={name},mac={mac}{size}{more}")


def _escape(value: Path | str) -> str:
    """Double the commas, as QEMU's option values require."""
    return str(value).replace(",", ",,")
