# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab up | down | ssh | status`."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from rocelab import artifacts
from rocelab.bench.plan import TestbedPlan
from rocelab.bench.plan_file import MOST_NODES, MOST_SWITCHES
from rocelab.cli import console
from rocelab.errors import TestbedError, UsageError
from rocelab.node.prepare import device_of, prepare
from rocelab.provider import testbeds
from rocelab.provider.qemu import state as states
from rocelab.provider.qemu import testbed as qemu
from rocelab.provider.qemu.spec import Provider as VirtualProvider
from rocelab.provider.testbeds import VirtualTestbed

DEFAULT = "default"

Name = Annotated[str, typer.Option("--name", help="The testbed's name.", metavar="NAME")]


class Provider(StrEnum):
    """How nodes come to be."""

    QEMU = "qemu"
    VETH = "veth"
    SSH = "ssh"


def prepare_nodes(testbed: VirtualTestbed, line: str) -> None:
    """Driver, probes and rxe device on every node; a testbed that cannot have them is ended."""
    try:
        driver = artifacts.driver(line)
        prepare(testbed.nodes, driver, artifacts.programs(line))
    except BaseException:
        testbed.down()
        raise
    probes = ", ".join(artifacts.PROBES)
    devices = " and ".join(dict.fromkeys(device_of(node) for node in testbed.nodes))
    console.say(f"on each node: driver rocelab-{driver.patch_id}, device {devices}, {probes}")


def up(
    name: Name = DEFAULT,
    provider: Annotated[
        Provider,
        typer.Option(help="A machine for each node, or one with all ends in it over veth."),
    ] = Provider.QEMU,
    icount: Annotated[
        bool, typer.Option("--icount", help="Time counts instructions; implies --provider veth.")
    ] = False,
    line: Annotated[str, typer.Option(help="Kernel line.", metavar="LINE")] = "6.12",
    mtu: Annotated[
        int, typer.Option(help="MTU of the data link, bytes.", min=1280, max=9000, metavar="BYTES")
    ] = 4200,
    nodes: Annotated[
        int,
        typer.Option(
            help="How many; more than two need a switch.", min=2, max=MOST_NODES, metavar="N"
        ),
    ] = 2,
    switches: Annotated[
        int,
        typer.Option(
            help="Bridges in a row between the first node and the others.",
            min=0,
            max=MOST_SWITCHES,
            metavar="N",
        ),
    ] = 0,
    memory: Annotated[
        int, typer.Option(help="Memory of a node, MiB.", min=512, metavar="MIB")
    ] = qemu.MEMORY_MB,
    ssh_port: Annotated[
        int | None,
        typer.Option(
            help="First of the SSH ports on 127.0.0.1; any free ones if absent.",
            min=1024,
            max=65000,
            metavar="PORT",
        ),
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="Boot only: no driver, no probes, no rxe device.")
    ] = False,
) -> None:
    """Boot nodes with the instrumented driver, and leave them up.

    The nodes are virtual machines, KVM where it works, else emulated (about 20 seconds to boot).
    With --provider veth they are the ends of veth pairs in one machine, and have one clock.
    `rocelab run` uses a testbed that is up and fits its plan. Take it down with `rocelab down`.
    """
    if line not in artifacts.LINES:
        raise UsageError(
            f"there is no kernel line {line!r}", action=f"choose from {', '.join(artifacts.LINES)}"
        )
    if provider is Provider.SSH:
        raise UsageError(
            "hosts of your own are up already", action="prepare them with `rocelab hosts prepare`"
        )
    kind: VirtualProvider = "veth" if icount or provider is Provider.VETH else "qemu"
    if TestbedPlan(kind, line, mtu, nodes=nodes, switches=switches).lacks_switch:
        raise UsageError(
            f"a link has two ends, and {nodes} nodes need a switch", action="say --switches 1"
        )
    testbed = testbeds.up(
        name,
        provider=kind,
        line=line,
        mtu=mtu,
        icount=icount,
        nodes=nodes,
        switches=switches,
        memory_mb=memory,
        ssh_port=ssh_port,
        say=console.say,
    )
    if not bare:
        prepare_nodes(testbed, line)
    named = "" if name == DEFAULT else f"--name {name} "
    console.out.print(f"testbed {name} is up: try `rocelab ssh {named}n1`")


def down(
    name: Name = DEFAULT,
    everything: Annotated[bool, typer.Option("--all", help="Every testbed of yours.")] = False,
) -> None:
    """End a testbed's nodes; nothing of it stays behind."""
    found = states.State.all()
    if not everything:
        found = [state for state in found if state.name == name]
        if not found:
            raise UsageError(f"no testbed {name} is up", action="see what is with `rocelab status`")
    for state in found:
        testbeds.of(state).down()
        console.out.print(f"testbed {state.name} is down")


def ssh(
    node: Annotated[str, typer.Argument(help="n1, n2, …", metavar="NODE")],
    command: Annotated[
        list[str] | None, typer.Argument(help="Run this instead of a shell.", metavar="COMMAND")
    ] = None,
    name: Name = DEFAULT,
) -> None:
    """Log in to a node, or run a command there.

    The exit code is the command's, or 255 when the connection failed.
    """
    testbed = testbeds.attach(name)
    names = [candidate.name for candidate in testbed.nodes]
    if testbed.spec.switch is not None:
        names.append(testbed.spec.switch.name)
    if node not in names:
        raise UsageError(f"there is no node {node!r}", action=f"choose from {', '.join(names)}")
    target = testbed.target(node)
    argv = target.command(command) if command else ["ssh", *target.options(), "--", target.host]
    os.execvp("ssh", argv)  # noqa: S606


def status() -> None:
    """Say which testbeds are up, and whether their nodes live."""
    found = states.State.all()
    if not found:
        console.out.print("no testbed is up; boot one with `rocelab up`")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ("testbed", "provider", "line", "accelerator", "node", "state", "ssh port")
    for column in (*columns, "data address"):
        table.add_column(column)
    for state in found:
        try:
            testbed = testbeds.of(state)
        except TestbedError as error:
            console.say(f"{error.what}: {error.cause}")
            continue
        spec, died = testbed.spec, state.died()
        addresses = {node.name: node.link.ipv4 for node in testbed.nodes}
        if spec.switch is not None:
            addresses[spec.switch.name] = "-"
        for node, address in addresses.items():
            # all ends of a layout are in one machine
            machine = next((m for m in spec.machines if m.name == node), spec.nodes[0])
            table.add_row(
                *(spec.name, spec.provider, spec.line, spec.accelerator, node),
                f"died ({died[machine.name]})" if machine.name in died else "up",
                *(str(machine.ssh_port), address),
            )
    console.out.print(table)
