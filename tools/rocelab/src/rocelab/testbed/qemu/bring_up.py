# SPDX-License-Identifier: GPL-2.0-or-later
"""Bring a testbed of virtual machines up: restore its machines, or boot them once and save them.

A machine is saved twice: when it has booted, and when everything was installed on it. Either time
it waits for its identity, so that no snapshot has one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocelab import accelerators, json_text
from rocelab.errors import MissingError, TestbedError, UsageError
from rocelab.plans.catalog import Provider
from rocelab.testbed import artifacts, bridges, package_image
from rocelab.testbed.bridges import Port
from rocelab.testbed.node.prepare_node import keep_neighbours
from rocelab.testbed.node.ssh_node import SshNode
from rocelab.testbed.package_image import NONE, Packages
from rocelab.testbed.preparation import Preparation
from rocelab.testbed.qemu import (
    accelerator_probe,
    ports,
    real_time,
    snapshot,
    snapshot_cache,
    snapshot_key,
    start,
)
from rocelab.testbed.qemu.host_check import check_host
from rocelab.testbed.qemu.machine_spec import (
    MEMORY_MB,
    NodeSpec,
    TestbedSpec,
    peer_port_mac,
    port_mac,
)
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.qemu.qemu_version import kernel_parameters, qemu_version
from rocelab.testbed.qemu.state_folder import State

_SWITCH_MB = 512
"""Memory of the machine between the nodes, which only boots and forwards."""
_PEER_MTU = 1500

Say = Callable[[str], None]


def _say_nothing(text: str) -> None:
    """Discard progress messages."""
    del text


def up(
    name: str,
    *,
    line: str,
    mtu: int,
    provider: Provider = Provider.QEMU,
    icount: bool = False,
    lockstep: bool = False,
    emulation: accelerators.Name = "icount",
    nodes: int = 2,
    switches: int = 0,
    vcpus: int | None = None,
    last_line: str = "",
    memory_mb: int = MEMORY_MB,
    ssh_port: int | None = None,
    lifeline: bool = False,
    patience: float = 1,
    packages: Packages = NONE,
    preparation: Preparation | None = None,
    fresh: bool = False,
    say: Say = _say_nothing,
) -> QemuTestbed:
    """Bring up a testbed's machines, with `preparation`, and wait until all of them answer.

    They are restored from snapshots where there are any, else booted and saved; `fresh` machines
    boot, and are not saved.

    `packages` are in their image. Provider `veth` has one machine. Provider `qemu` has one for
    each of `nodes`, and one more for the `switches` between them; more than two nodes need a
    switch. The last node runs the kernel line `last_line`, if given. Where KVM does not work,
    or with `icount`, machines are emulated and count instructions, with `lockstep` on one clock
    (two nodes without a switch). Where KVM does not work, `emulation` says how else: on one
    clock, or in real time with processors in parallel. With `lifeline` the testbed ends with
    this process, else with `down`. `patience` multiplies every time limit. Raises UsageError
    for a name in use, MissingError when this machine lacks resources, TestbedError when a node
    fails.
    """
    state = State(name)
    if state.alive():
        raise UsageError(
            f"testbed {name} is already up",
            cause="an earlier `rocelab up` made it",
            action="Use it, or take it down with `rocelab down`.",
        )
    machines = 1 if provider == Provider.VETH else nodes
    between = switches > 0 and provider == Provider.QEMU
    check_host(machines, memory_mb, state.path.parent, more_mb=_SWITCH_MB if between else 0)
    image = package_image.of_line(line, packages, say)
    last = str(artifacts.image(last_line)) if last_line else ""
    numbers = ports.choose(machines + between, ssh_port)
    accelerator: accelerators.Name
    if lockstep:
        accelerator = "lockstep"
    else:
        accelerator = "icount" if icount else accelerator_probe.choose(image, emulation)
    spec = TestbedSpec(
        name,
        line,
        str(image),
        accelerator,
        tuple(
            NodeSpec(i + 1, numbers[i], memory_mb, mtu, image=last if i == machines - 1 else "")
            for i in range(machines)
        ),
        provider,
        ends=nodes,
        switches=switches,
        switch=NodeSpec(machines + 1, numbers[-1], _SWITCH_MB, mtu, True) if between else None,
        processors=vcpus,
        lockstep=str(artifacts.lockstep()) if accelerator == "lockstep" else "",
        kernel_parameters=_kernel_parameters(accelerator, image, vcpus or 1),
        packages=packages.labels,
    )
    size = _node_count(nodes) if provider == Provider.QEMU else f"1 machine with {nodes} ends"
    path = f" over {bridges.describe(switches)}" if switches else ""
    say(f"{size}{path}, kernel line {line}, accelerator {accelerator}")
    making = _BringUp(state, spec, preparation, fresh, lifeline, patience, say)
    for _ in range(max(real_time.BOOTS, len(spec.machines))):
        testbed = making.testbed()
        if testbed is not None:
            return testbed
        say("the clock of a node runs wrong: booting again")
    raise TestbedError(
        "the clock of a node ran wrong after each boot",
        cause="this machine is too busy for an emulated one to measure its TSC's frequency",
        action="Try again when less runs on it.",
    )


@dataclass(frozen=True)
class _BringUp:
    """One testbed that comes up."""

    state: State
    spec: TestbedSpec
    preparation: Preparation | None
    fresh: bool
    lifeline: bool
    patience: float
    say: Say

    def testbed(self) -> QemuTestbed | None:
        """Return the testbed, None if a machine that needs real time has a clock that runs wrong.

        In that case no snapshot of it is left.
        """
        if self.fresh:
            return self._boot_afresh()
        base = [snapshot_key.machine(self.spec, node) for node in self.spec.machines]
        final = [
            snapshot_key.key_with_preparation(key, digest) if digest else key
            for key, digest in zip(base, self._digests(), strict=True)
        ]
        try:
            return self._restore(final) or self._make(base, final)
        except _WrongClockError:
            for key in (*base, *final):
                snapshot_cache.forget(key)
            return None

    def _boot_afresh(self) -> QemuTestbed | None:
        testbed = self._boot()
        try:
            self._use(testbed)
            self._install(testbed)
        except _WrongClockError:
            testbed.down()
            return None
        except BaseException:
            testbed.down()
            raise
        return testbed

    def _boot(self) -> QemuTestbed:
        """Return machines that have booted and wait for their identity."""
        began = time.monotonic()
        testbed = self._start(self.spec, start.wait_for_boot)
        self.say(f"{_names(testbed)} booted in {time.monotonic() - began:.0f} s")
        return testbed

    def _digests(self) -> list[str]:
        """What decides what is put on each machine; empty: nothing."""
        nodes = self.preparation.digest if self.preparation else ""
        return [_bridges_digest(self.spec) if node.is_switch else nodes for node in self._machines]

    @property
    def _machines(self) -> tuple[NodeSpec, ...]:
        return self.spec.machines

    def _make(self, base: Sequence[str], final: Sequence[str]) -> QemuTestbed:
        """Make what is not in the cache; others that want the same wait, and then restore it."""
        if list(base) == list(final):
            return self._boot_and_save(base)
        with snapshot_cache.only_writer(_hash(final), self._say_waiting):
            if testbed := self._restore(final):
                return testbed
            testbed = self._restore(base) or self._boot_and_save(base)
            try:
                self._prepare(testbed, final)
            except BaseException:
                testbed.down()
                raise
            return testbed

    def _say_waiting(self) -> None:
        self.say("waiting for another rocelab, which prepares such machines")

    def _boot_and_save(self, keys: Sequence[str]) -> QemuTestbed:
        with snapshot_cache.only_writer(_hash(keys), self._say_waiting):
            if testbed := self._restore(keys):
                return testbed
            testbed = self._boot()
            try:
                self._save(testbed, keys, "booted")
                self._use(testbed)
            except BaseException:
                testbed.down()
                raise
            return testbed

    def _restore(self, keys: Sequence[str]) -> QemuTestbed | None:
        """Return the testbed from these snapshots, None unless all are there and good."""
        snapshots = [snapshot_cache.find(key) for key in keys]
        if None in snapshots:
            return None
        began = time.monotonic()
        paths = {
            node.name: str(one.path)
            for node, one in zip(self._machines, snapshots, strict=True)
            if one
        }
        try:
            testbed = self._start(self._from(paths), start.wait_for_load)
        except TestbedError as error:
            self.say(f"not restored, but booted: {error.what} ({error.cause})")
            for key in keys:
                snapshot_cache.forget(key)
            return None
        try:
            self._use(testbed)
        except BaseException:
            testbed.down()
            raise
        self.say(f"{_names(testbed)} restored in {time.monotonic() - began:.1f} s")
        return testbed

    def _from(self, paths: Mapping[str, str]) -> TestbedSpec:
        """Return the spec with each machine's snapshot."""
        switch = self.spec.switch
        return replace(
            self.spec,
            nodes=tuple(replace(node, snapshot=paths[node.name]) for node in self.spec.nodes),
            switch=replace(switch, snapshot=paths[switch.name]) if switch else None,
        )

    def _start(self, spec: TestbedSpec, wait: Callable[[QemuTestbed], None]) -> QemuTestbed:
        testbed = start.start(self.state, spec, lifeline=self.lifeline, patience=self.patience)
        try:
            wait(testbed)
        except BaseException:
            testbed.down()
            raise
        return testbed

    def _use(self, testbed: QemuTestbed) -> None:
        """Make machines that wait for their identity usable. Raises _WrongClockError."""
        start.identify(testbed)
        start.log_in(testbed)
        if self.spec.accelerator == "tcg" and not real_time.prepare(testbed.machines):
            raise _WrongClockError

    def _install(self, testbed: QemuTestbed) -> None:
        """Put on the machines what they are to have."""
        if testbed.switch is not None:
            _connect(testbed.switch, self.spec)
        if self.preparation:
            self.preparation.apply(testbed.nodes)
            if self.spec.provider == Provider.QEMU:
                keep_neighbours(testbed.nodes)

    def _prepare(self, testbed: QemuTestbed, keys: Sequence[str]) -> None:
        self._install(testbed)
        start.wait_again(testbed)
        self._save(testbed, keys, self.preparation.text if self.preparation else "booted")
        self._use(testbed)

    def _save(self, testbed: QemuTestbed, keys: Sequence[str], description: str) -> None:
        """Save the machines, which wait for their identity. What prevents it is only told."""
        spec = self.spec
        shape = f"{spec.provider}, kernel line {spec.line}, {spec.accelerator}"
        machines = [
            (
                testbed.state.path / f"{node.name}.qmp",
                key,
                f"{node.name}, {shape}, MTU {node.mtu}: {description}",
            )
            for node, key in zip(self._machines, keys, strict=True)
        ]
        try:
            snapshot.save(machines)
        except (OSError, TestbedError, MissingError) as error:
            testbed.alive()
            self.say(f"these machines were not saved, and will boot again next time: {error}")


def _kernel_parameters(accelerator: accelerators.Name, image: Path, vcpus: int) -> str:
    """Return what emulation and the image ask for."""
    own = artifacts.facts(image / "image.json").get("kernel_parameters", "")
    alone = real_time.BOOT_ALONE if accelerator == "tcg" and vcpus > 1 else ""
    return " ".join(f"{kernel_parameters(accelerator, qemu_version())} {alone} {own}".split())


def _node_count(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"


class _WrongClockError(Exception):
    """A machine that needs real time has a clock that runs wrong."""


def _names(testbed: QemuTestbed) -> str:
    return " and ".join(node.name for node in testbed.machines)


def _hash(keys: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(keys).encode()).hexdigest()


def _bridges_digest(spec: TestbedSpec) -> str:
    made = [[node.name for node in spec.nodes], spec.switches, [node.mtu for node in spec.nodes]]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()


def _connect(switch: SshNode, spec: TestbedSpec) -> None:
    """Make the bridges on the machine between the nodes."""
    links = json_text.parse_any(switch.run(("ip", "-j", "link", "show")).stdout)
    names = {link["address"]: link["ifname"] for link in links}
    data = [Port(names[port_mac(node)], node.link.mac) for node in spec.nodes]
    peer = [Port(names[peer_port_mac(node)], node.peer_mac) for node in spec.nodes]
    for argv in (
        *bridges.make(data, spec.switches, spec.nodes[0].mtu),
        *bridges.make(peer, 1, _PEER_MTU, name="peer"),
    ):
        switch.run(argv)
