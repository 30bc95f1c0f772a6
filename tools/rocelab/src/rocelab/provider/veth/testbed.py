# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends on one machine (rocelab.provider.base.Testbed): in a virtual one made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rocelab import artifacts
from rocelab.node.endpoint import Endpoint
from rocelab.node.prepare import install_probes
from rocelab.node.ssh import SshTarget
from rocelab.provider import tap
from rocelab.provider.base import WHOLE_FRAMES, Accelerator
from rocelab.provider.qemu import testbed as qemu
from rocelab.provider.qemu.spec import TestbedSpec
from rocelab.provider.qemu.state import State
from rocelab.provider.veth import layout, pair
from rocelab.provider.veth.layout import Layout


class VethTestbed:
    """Ends over veth on a machine that is up."""

    def __init__(self, host: qemu.QemuTestbed, plan: Layout | None = None) -> None:
        """`plan`: what is on the machine, where that is not what it was made with."""
        self._host = host
        self._machine = host.nodes[0]
        self._layout = plan or _layout(host.spec)
        self._nodes = pair.ends(self._machine, self._layout)

    @property
    def nodes(self) -> Sequence[Endpoint]:
        """The ends."""
        return self._nodes

    @property
    def accelerator(self) -> Accelerator:
        """What the machine runs on."""
        return self._host.accelerator

    @property
    def control(self) -> None:
        """All ends are on one machine."""
        return None

    @property
    def host(self) -> qemu.QemuTestbed:
        """The machine that all ends are on."""
        return self._host

    @property
    def spec(self) -> TestbedSpec:
        """What the testbed consists of."""
        return self._host.spec

    @property
    def state(self) -> State:
        """Its state folder."""
        return self._host.state

    def target(self, name: str) -> SshTarget:
        """How to log in to the machine of an end: the same for all."""
        del name
        return self._machine.target

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> Iterator[None]:
        """Capture the link, on the machine itself."""
        try:
            with tap.capture(self._machine, self._layout.netdevs, path, snaplen):
                yield
        except BaseException:
            self.alive()  # a dead machine is the better message
            raise

    def alive(self) -> None:
        """Raise TestbedError, with its console, when the machine has died."""
        self._host.alive()

    def environment(self) -> dict[str, Any]:
        """Facts for run.json."""
        return {
            **self._host.environment(),
            "provider": "veth",
            "data_link": self._layout.words,
            "switches": self._layout.switches,
            "witness": layout.WITNESS,
            "one_clock": True,
        }

    def down(self) -> None:
        """End the machine, and the ends with it."""
        self._host.down()


def up(
    name: str,
    *,
    line: str,
    mtu: int,
    icount: bool = False,
    nodes: int = 2,
    switches: int = 0,
    vcpus: int | None = None,
    memory_mb: int = qemu.MEMORY_MB,
    ssh_port: int | None = None,
    lifeline: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> VethTestbed:
    """Boot one machine and make the ends on it; parameters and errors as `qemu.testbed.up`."""
    program = artifacts.probe(tap.TAP, line)
    host = qemu.up(
        name,
        line=line,
        mtu=mtu,
        provider="veth",
        icount=icount,
        nodes=nodes,
        switches=switches,
        vcpus=vcpus,
        memory_mb=memory_mb,
        ssh_port=ssh_port,
        lifeline=lifeline,
        say=say,
    )
    try:
        install_probes(host.nodes[0], [program])
        pair.make(host.nodes[0], _layout(host.spec))
    except BaseException:
        host.down()
        raise
    return VethTestbed(host)


def _layout(spec: TestbedSpec) -> Layout:
    return Layout(spec.nodes[0].mtu, spec.ends, spec.switches)
