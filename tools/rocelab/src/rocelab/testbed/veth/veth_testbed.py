# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends on one virtual machine (rocelab.testbed.interface.Testbed)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rocelab import accelerators
from rocelab.plans.catalog import Provider, Transport
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.interface import WHOLE_FRAMES, Captured
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import Endpoint
from rocelab.testbed.node.ssh_node import SshTarget
from rocelab.testbed.package_image import NONE, Packages
from rocelab.testbed.preparation import Payload, Preparation, digest
from rocelab.testbed.qemu import bring_up
from rocelab.testbed.qemu.machine_spec import MEMORY_MB, TestbedSpec
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.qemu.state_folder import State
from rocelab.testbed.veth import layout, pair_setup
from rocelab.testbed.veth.layout import Layout


class VethTestbed:
    """Ends connected by veth on a virtual machine that is up."""

    def __init__(self, host: QemuTestbed, plan: Layout | None = None) -> None:
        """`plan`: the layout on the machine, if it is not the one in the testbed's spec."""
        self._host = host
        self._machine = host.nodes[0]
        self._layout = plan or _layout(host.spec)
        self._nodes = pair_setup.ends(self._machine, self._layout)

    @property
    def nodes(self) -> Sequence[Endpoint]:
        """The ends."""
        return self._nodes

    @property
    def accelerator(self) -> accelerators.Name:
        """What executes the machine's instructions."""
        return self._host.accelerator

    @property
    def control(self) -> None:
        """None: all ends are on one machine."""
        return None

    @property
    def control_ports(self) -> frozenset[int]:
        """None: control never shares the data link."""
        return frozenset()

    @property
    def host(self) -> QemuTestbed:
        """The machine that all ends are on."""
        return self._host

    @property
    def spec(self) -> TestbedSpec:
        """What the testbed consists of."""
        return self._host.spec

    @property
    def state(self) -> State:
        """The testbed's state folder."""
        return self._host.state

    def target(self, name: str) -> SshTarget:
        """Return how to log in to an end's machine, which is the same for all."""
        del name
        return self._machine.target

    def over(self, transport: Transport) -> VethTestbed:
        """Itself: all transports share the data link."""
        del transport
        return self

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> Iterator[Captured]:
        """Capture the link, on the machine itself."""
        try:
            with linktap.capture(self._machine, self._layout.netdevs, path, snaplen) as captured:
                yield captured
        except BaseException:
            self.alive()  # if the machine died, say that instead
            raise

    def take_over(self) -> None:
        """Do nothing: captures end with the machine's lease."""

    def alive(self) -> None:
        """Raise TestbedError when the machine has died; the error quotes its console."""
        self._host.alive()

    def environment(self) -> dict[str, Any]:
        """Describe the testbed for run.json."""
        return {
            **self._host.environment(),
            "provider": Provider.VETH,
            "data_link": self._layout.description,
            "switches": self._layout.switches,
            "witness": layout.WITNESS,
            "one_clock": True,
        }

    def down(self) -> None:
        """Stop the machine, and the ends with it."""
        self._host.down()


def up(
    name: str,
    *,
    line: str,
    mtu: int,
    icount: bool = False,
    emulation: accelerators.Name = "icount",
    nodes: int = 2,
    switches: int = 0,
    vcpus: int | None = None,
    memory_mb: int = MEMORY_MB,
    ssh_port: int | None = None,
    packages: Packages = NONE,
    payload: Payload | None = None,
    fresh: bool = False,
    lifeline: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> VethTestbed:
    """Bring up one machine with the ends on it, and `payload` on them.

    For parameters and errors see `bring_up.up`.
    """
    plan = Layout(mtu, nodes, switches)
    tap = Payload(None, (artifacts.probe(linktap.TAP, line),))
    host = bring_up.up(
        name,
        line=line,
        mtu=mtu,
        provider=Provider.VETH,
        icount=icount,
        emulation=emulation,
        nodes=nodes,
        switches=switches,
        vcpus=vcpus,
        memory_mb=memory_mb,
        ssh_port=ssh_port,
        packages=packages,
        lifeline=lifeline,
        fresh=fresh,
        preparation=_preparation(plan, tap, payload or Payload(None, ())),
        say=say,
    )
    return VethTestbed(host)


def _preparation(plan: Layout, tap: Payload, payload: Payload) -> Preparation:
    """Return what makes the ends on a machine, and puts `payload` on them."""

    def apply(nodes: Sequence[Node]) -> None:
        (machine,) = nodes
        tap.install([machine])
        pair_setup.make(machine, plan)
        payload.install(pair_setup.ends(machine, plan))

    commands = [repr(plan.make()).encode()]
    return Preparation(
        payload.text, digest((*tap.contents(), *commands, *payload.contents())), apply
    )


def _layout(spec: TestbedSpec) -> Layout:
    return Layout(spec.nodes[0].mtu, spec.ends, spec.switches)
