# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab up | down | ssh | status`."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.table import Table

from rocelab import artifacts
from rocelab.cli import console
from rocelab.errors import TestbedError, UsageError
from rocelab.node.prepare import prepare
from rocelab.provider.qemu import state as states
from rocelab.provider.qemu import testbed as qemu

DEFAULT = "default"

Name = Annotated[str, typer.Option("--name", help="The testbed's name.", metavar="NAME")]


def prepare_nodes(testbed: qemu.QemuTestbed, line: str) -> None:
    """Driver, probes and rxe device on every node; a testbed that cannot have them is ended."""
    try:
        driver = artifacts.driver(line)
        prepare(testbed.nodes, driver, artifacts.probes())
    except BaseException:
        testbed.down()
        raise
    probes = ", ".join(artifacts.PROBES)
    console.say(f"on each node: driver rocelab-{driver.patch_id}, device rxe0, {probes}")


def up(
    name: Name = DEFAULT,
    line: Annotated[str, typer.Option(help="Kernel line.", metavar="LINE")] = "6.12",
    mtu: Annotated[
        int, typer.Option(help="MTU of the data link, bytes.", min=1280, max=9000, metavar="BYTES")
    ] = 4200,
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
    """Boot two nodes with the instrumented driver, and leave them up.

    The nodes are virtual machines, KVM where it works, else emulated (about 20 seconds to boot).
    `rocelab run` uses a testbed that is up and fits its plan. Take it down with `rocelab down`.
    """
    if line not in artifacts.LINES:
        raise UsageError(
            f"there is no kernel line {line!r}", action=f"choose from {', '.join(artifacts.LINES)}"
        )
    testbed = qemu.up(
        name, line=line, mtu=mtu, memory_mb=memory, ssh_port=ssh_port, say=console.say
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
        qemu.QemuTestbed(state).down()
        console.out.print(f"testbed {state.name} is down")


def ssh(
    node: Annotated[str, typer.Argument(help="n1 or n2.", metavar="NODE")],
    command: Annotated[
        list[str] | None, typer.Argument(help="Run this instead of a shell.", metavar="COMMAND")
    ] = None,
    name: Name = DEFAULT,
) -> None:
    """Log in to a node, or run a command there.

    The exit code is the command's, or 255 when the connection failed.
    """
    testbed = qemu.attach(name)
    names = [candidate.name for candidate in testbed.nodes]
    if node not in names:
        raise UsageError(f"there is no node {node!r}", action=f"choose from {', '.join(names)}")
    target = testbed.nodes[names.index(node)].target
    argv = target.command(command) if command else ["ssh", *target.options(), "--", target.host]
    os.execvp("ssh", argv)  # noqa: S606


def status() -> None:
    """Say which testbeds are up, and whether their nodes live."""
    found = states.State.all()
    if not found:
        console.out.print("no testbed is up; boot one with `rocelab up`")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("testbed", "line", "accelerator", "node", "state", "ssh port", "data address"):
        table.add_column(column)
    for state in found:
        try:
            spec = state.spec()
        except TestbedError as error:
            console.say(f"{error.what}: {error.cause}")
            continue
        died = state.died()
        for node in spec.nodes:
            table.add_row(
                spec.name,
                spec.line,
                spec.accelerator,
                node.name,
                f"died ({died[node.name]})" if node.name in died else "up",
                str(node.ssh_port),
                node.link.ipv4,
            )
    console.out.print(table)
