# SPDX-License-Identifier: GPL-2.0-or-later
"""Load the drivers of a comparison's sides in turn on hosts of the user's own.

The module is built once and is the same on all hosts. Their own driver comes back when the lease
ends, which it does even if this process is killed (rocelab.testbed.hosts.driver_turn).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rocelab.directory import temporary_folder
from rocelab.errors import RocelabError, TestbedError, UsageError
from rocelab.measure import driver_turns
from rocelab.plans.catalog import TRANSPORTS, Provider
from rocelab.plans.plan import Plan
from rocelab.plans.side import Side
from rocelab.testbed import lease
from rocelab.testbed.hosts import (
    changed_module,
    driver_turn,
    host_build,
    loaded_driver,
    prebuilt,
)
from rocelab.testbed.hosts.driver_turn import Placed
from rocelab.testbed.hosts.loaded_driver import Device, LoadedDriver
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import offer_roce_v1
from rocelab.testbed.ssh import connect, ssh_testbed
from rocelab.testbed.ssh.inventory import Host
from rocelab.testbed.ssh.ssh_testbed import SshTestbed

Say = Callable[[str], None]
OnHosts = tuple[Placed, ...]
"""A driver, ready to be loaded on each host."""
_WHAT_FOR = "exchanging the driver"


def check(plan: Plan, sides: Sequence[Side]) -> None:
    """Raise UsageError unless plan and sides can be measured on hosts."""
    if plan.testbed.provider != Provider.SSH:
        raise UsageError(
            "an A/B comparison exchanges the driver of virtual machines, or of hosts by SSH",
            cause=f"the plan's provider is {plan.testbed.provider}",
            action="List the hosts in an inventory, and give it with --inventory.",
        )
    driver_turns.check_stages(plan)
    for side in sides:
        for label, value in (("MTU", side.mtu), ("kernel", side.line)):
            if value is not None:
                raise UsageError(
                    f"{side.text!a} asks for another {label} than the hosts have",
                    cause="on hosts only the driver, its parameters and sysctls are exchanged",
                    action="Leave out mtu: and line:, or --inventory: rocelab then boots virtual "
                    "machines.",
                )


@dataclass(frozen=True)
class _Borrowed:
    """Hosts that we are logged in to and hold a lease on."""

    testbed: SshTestbed
    nodes: Sequence[Node]
    owed: Sequence[LoadedDriver]
    """What each gets back."""
    devices: Sequence[Sequence[Device]]
    """On each, those that it had and those that the comparison uses."""
    work: Sequence[str]
    """A temporary folder on each."""
    line: str
    """The kernel line of ours that they run; empty if it is none of those built here."""

    def each(self) -> list[int]:
        """Return the hosts' numbers."""
        return list(range(len(self.nodes)))


class Hosts:
    """Hosts of an inventory (rocelab.measure.driver_turns.Turns)."""

    def __init__(self, plan: Plan, hosts: Sequence[Host], say: Say) -> None:
        self._plan, self._say = plan, say
        self._hosts = ssh_testbed.first(hosts, plan.testbed.nodes)
        self._login, self._lease = ExitStack(), ExitStack()
        self._borrowed: _Borrowed | None = None
        self._placed: dict[Side, OnHosts] = {}
        self._has_sources = self._exchanged = False

    def begin(self, side: Side) -> None:
        """Log in and look whether the driver may be exchanged."""
        del side
        self._up()

    def _up(self) -> _Borrowed:
        if self._borrowed is None:
            self._say(f"logging in to {' and '.join(host.name for host in self._hosts)}")
            nodes = self._login.enter_context(connect.connect(self._hosts, root_for=_WHAT_FOR))
            check_alike(nodes)
            self._lease.enter_context(lease.hold(nodes))
            drivers = at_once(loaded_driver.read, nodes)
            transports = {cell.transport for cell in self._plan.cells()}
            # this loads the driver where none is loaded, and adds missing devices
            testbed = ssh_testbed.under_lease(nodes, self._hosts, transports)
            now = at_once(loaded_driver.borrow, nodes)
            self._borrowed = _Borrowed(
                testbed,
                nodes,
                owed=[
                    replace(one, devices=before.devices if before else ())
                    for one, before in zip(now, drivers, strict=True)
                ],
                devices=[one.devices for one in now],
                work=[self._lease.enter_context(host_build.work_folder(node)) for node in nodes],
                line=prebuilt.line_of(nodes[0].run(["uname", "-r"]).stdout.strip()),
            )
        return self._borrowed

    def drivers(self, sides: Sequence[Side]) -> list[OnHosts]:
        """Return each side's driver, built if necessary, on every host."""
        return [self._driver(side) for side in sides]

    def _driver(self, side: Side) -> OnHosts:
        # what is built depends on neither parameters nor sysctls
        key = replace(side, text="", parameters=(), sysctls=())
        if key not in self._placed:
            there = self._up()
            number = len(self._placed)
            if side.is_built or not there.line:
                self._say(f"building the driver of {side.text}")
            path = (
                str(driver_turns.driver(side, there.line, self._say).module) if there.line else ""
            )
            self._placed[key] = (
                self._send(there, Path(path), number)
                if path
                else self._spread(there, self._build_there(there, side, number), number)
            )
        return self._placed[key]

    def _build_there(self, there: _Borrowed, side: Side, number: int) -> str:
        first, work = there.nodes[0], there.work[0]
        if not self._has_sources:
            host_build.check_tools(first, host_build.MODULE_TOOLS)
            host_build.send_sources(first, work)
            self._has_sources = True
        return changed_module.build(
            *(first, work, f"{work}/change{number}"),
            variant=side.variant,
            patches=side.patches,
            tree=side.tree,
            commit=side.commit,
        )

    def _spread(self, there: _Borrowed, path: str, number: int) -> OnHosts:
        """Copy a module from the first host to all."""
        with temporary_folder() as folder:
            local = Path(folder) / "rdma_rxe.ko"
            there.nodes[0].get(path, local)
            return self._send(there, local, number)

    def _send(self, there: _Borrowed, module: Path, number: int) -> OnHosts:
        def one(host: int) -> Placed:
            path = f"{there.work[host]}/side{number}.ko"
            there.nodes[host].put(module, path)
            return driver_turn.place(there.nodes[host], path)

        return tuple(at_once(one, there.each()))

    @contextmanager
    def carrying(self, side: Side, driver: OnHosts) -> Iterator[SshTestbed]:
        """Yield the hosts with a side's driver and settings; the latter are undone."""
        there = self._up()

        def one(host: int) -> None:
            node = there.nodes[host]
            if not self._exchanged:
                driver_turn.note(node, there.owed[host])
            driver_turn.exchange(node, driver[host], there.devices[host], side.parameters)

        at_once(one, there.each())
        self._exchanged = True
        with ExitStack() as stack:
            for node in there.nodes:
                stack.enter_context(driver_turns.sysctls(node, side.sysctls))
            if self._plan.roce_v1:
                offer_roce_v1(there.testbed.over(TRANSPORTS["rxe-v1"]).nodes)
            yield there.testbed

    def down(self) -> None:
        """Give the hosts back: their driver returns as the lease ends, and is looked at.

        Raises TestbedError if a host does not have it again, unless another error is on its way,
        which that one then follows as a message.
        """
        there, self._borrowed = self._borrowed, None
        on_its_way = sys.exc_info()[1] is not None
        with self._login:
            self._lease.close()
            if there is None:
                return
            try:
                at_once(
                    lambda host: driver_turn.check_restored(there.nodes[host], there.owed[host]),
                    there.each(),
                )
            except RocelabError as error:
                if not on_its_way:
                    raise
                self._say(f"{error.what}: {error.cause}. {error.action}")


def check_alike(nodes: Sequence[Node]) -> None:
    """Raise TestbedError unless all hosts run the same kernel: they get the same module."""
    kernels = [" ".join(node.run(["uname", "-rvm"]).stdout.split()) for node in nodes]
    for node, kernel in zip(nodes, kernels, strict=True):
        if kernel != kernels[0]:
            raise TestbedError(
                f"{nodes[0].name} and {node.name} run different kernels",
                cause=f"{kernels[0]!a:.100} and {kernel!a:.100}",
                action="Boot the same kernel on all hosts: otherwise the sides' drivers would "
                "differ among them, too.",
            )
