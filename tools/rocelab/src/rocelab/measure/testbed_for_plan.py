# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose the testbed that a plan runs on, and make it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from rocelab import accelerators
from rocelab.errors import UsageError
from rocelab.plans import fault_means, testbed_rules
from rocelab.plans.catalog import TESTS, TRANSPORTS, Provider
from rocelab.plans.plan import Plan, TestbedPlan
from rocelab.plans.root_needs import root_needs
from rocelab.testbed import by_name, lease
from rocelab.testbed.by_name import AnyTestbed, TransientTestbed, VirtualTestbed
from rocelab.testbed.node.endpoint import machines
from rocelab.testbed.node.prepare_node import offer_roce_v1, roce_v1_default
from rocelab.testbed.package_image import Packages
from rocelab.testbed.preparation import Payload
from rocelab.testbed.qemu.state_folder import State
from rocelab.testbed.slurm import slurm_testbed
from rocelab.testbed.ssh import ssh_testbed
from rocelab.testbed.ssh.inventory import Host
from rocelab.testbed.ssh.ssh_testbed import SshTestbed
from rocelab.testbed.veth import native as native_testbed

Say = Callable[[str], None]


def move_plan(plan: Plan, provider: Provider | None, *, icount: bool, native: bool) -> Plan:
    """Return the plan with its benchmarks moved to another testbed. Raises UsageError.

    `provider` is None to keep the plan's. `icount` implies a provider of virtual machines, `native`
    provider `veth`.
    """
    if native and (icount or provider not in (None, Provider.VETH)):
        raise UsageError(
            "--native runs both ends on this machine: it excludes other providers and --icount",
            cause="both options choose the testbed",
            action="Leave out --native, or the other option.",
        )
    if icount and provider is not None and provider.own_hosts:
        raise UsageError(
            f"--icount cannot be used with --provider {provider}",
            cause="only emulated machines count their instructions",
            action="Leave out --icount or --provider.",
        )
    asked = provider or plan.testbed.provider
    chosen = asked
    if native:
        chosen = Provider.VETH
    elif icount and asked.own_hosts:
        chosen = Provider.QEMU
    counting = icount or plan.testbed.icount
    here = native or (plan.testbed.native and chosen == Provider.VETH and not icount)
    # your own hosts are cabled already: a plan for another provider cannot say how
    if chosen.own_hosts:
        between = plan.testbed.switches if plan.testbed.provider.own_hosts else None
    else:
        between = plan.testbed.switches or 0
    where = replace(plan.testbed, provider=chosen, icount=counting, native=here, switches=between)
    # the plan itself is right: only the move breaks a rule
    if broken := testbed_rules.refusal(where):
        place = "this machine itself" if here else f"provider {chosen}"
        raise UsageError(
            f"the plan's testbed.{broken.key} does not allow {place}: {broken.why}",
            cause="an option chose another testbed than the plan does",
            action=f"{broken.action} Do that in a copy of the plan, or leave out the option.",
        )
    for benchmark in plan.benchmarks:
        test = TESTS[benchmark.tool, benchmark.test]
        if name := fault_means.may_wait(test, benchmark.faults, chosen):
            why, action = fault_means.MAY_WAIT
            raise UsageError(
                f"the plan's fault {name} cannot happen with provider {chosen}",
                cause=f"in {benchmark.title} {why}",
                action=action,
            )
    return replace(plan, testbed=where)


def has_clock(asked: TestbedPlan, accelerator: str) -> bool:
    """Say whether machines of an accelerator have the clock that a plan asks for."""
    if accelerator == "lockstep":
        return asked.lockstep or asked.emulated_as == "lockstep"
    counts = accelerators.of(accelerator).counts_instructions
    return not asked.lockstep and (counts or not asked.icount)


def running(plan: Plan, name: str, say: Say, stack: ExitStack) -> VirtualTestbed | None:
    """Return the named testbed if it is up and is what the plan asks for, else None.

    It is locked until `stack` closes, and what a killed run left there is removed. Raises
    UsageError when another process uses it, or when it was brought up bare.
    """
    where = plan.testbed
    if where.native or where.provider.own_hosts or not State(name).alive():
        return None
    testbed = by_name.attach(name)
    spec, asked = testbed.spec, plan.testbed
    shape = (spec.provider, spec.line, spec.nodes[0].mtu)
    fits = (
        shape == (asked.provider, asked.line, asked.mtu)
        and has_clock(asked, spec.accelerator)
        and spec.ends >= asked.nodes
        and spec.switches == asked.switches
        and set(plan.packages) <= set(spec.packages)
    )
    if asked.fresh:
        say(f"testbed {name} is not used: the plan boots machines for each repetition")
        return None
    if not fits:
        say(
            f"testbed {name} differs from the plan in provider, line, MTU, icount, lockstep, "
            "nodes, switches or packages; booting another"
        )
        return None
    stack.enter_context(testbed.state.hold())
    testbed.alive()
    if not testbed.state.prepared:
        raise UsageError(
            f"testbed {name} has no driver and no probes",
            cause="it was brought up with --bare, or its `rocelab up` was killed",
            action="Take it down with `rocelab down` and bring it up without --bare, or choose "
            "another name with --name: `rocelab run` then boots its own.",
        )
    stack.enter_context(lease.hold(testbed.nodes))
    testbed.take_over()
    if plan.roce_v1:
        for machine in machines(testbed.nodes):
            lease.at_end(machine, roce_v1_default(machine))
    _add_roce_v1(plan, testbed)
    return testbed


def make(plan: Plan, name: str, hosts: Sequence[Host], say: Say) -> AnyTestbed:
    """Make the plan's testbed; a virtual one gets `name` and ends with this process.

    `hosts` are those of the inventory: for provider ssh, and for slurm where one was given.
    """
    testbed = _make(plan, name, hosts, say)
    try:
        _add_roce_v1(plan, testbed)
    except BaseException:
        if isinstance(testbed, TransientTestbed):
            testbed.down()
        raise
    return testbed


def _make(plan: Plan, name: str, hosts: Sequence[Host], say: Say) -> AnyTestbed:
    where = plan.testbed
    if where.provider.own_hosts:
        testbed = _own_hosts(plan, hosts, say)
        if testbed.missing:
            say(f"nothing captures the link: {testbed.missing}; counters prove the transport")
        return testbed
    if where.native:
        return native_testbed.up(
            mtu=where.mtu,
            verbs=plan.rxe,
            nodes=where.nodes,
            switches=where.switches or 0,
            say=say,
        )
    return by_name.up(
        name,
        provider=where.provider,
        line=where.line,
        mtu=where.mtu,
        icount=where.icount,
        lockstep=where.lockstep,
        emulation=where.emulated_as,
        nodes=where.nodes,
        switches=where.switches or 0,
        packages=Packages(plan.packages),
        payload=Payload.of_line(where.line),
        fresh=where.fresh,
        lifeline=True,
        say=say,
    )


def _own_hosts(plan: Plan, hosts: Sequence[Host], say: Say) -> SshTestbed:
    nodes, needs = plan.testbed.nodes, root_needs(plan)
    transports = {cell.transport for cell in plan.cells()}
    if plan.testbed.provider == Provider.SLURM:
        return slurm_testbed.up(hosts, transports=transports, nodes=nodes, root_for=needs, say=say)
    say(f"logging in to {' and '.join(host.name for host in hosts[:nodes])}")
    return ssh_testbed.up(hosts, transports=transports, nodes=nodes, root_for=needs)


def _add_roce_v1(plan: Plan, testbed: AnyTestbed) -> None:
    """Let the devices of a testbed of ours offer RoCE v1 if the plan needs it."""
    if plan.roce_v1 and not plan.testbed.provider.own_hosts:
        offer_roce_v1(testbed.over(TRANSPORTS["rxe-v1"]).nodes)
