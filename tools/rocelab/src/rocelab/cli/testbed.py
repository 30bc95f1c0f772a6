# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab up | down | ssh | status`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rocelab import units
from rocelab.cli import options
from rocelab.errors import TestbedError, UsageError
from rocelab.limits import MAX_NODES, MAX_SWITCHES
from rocelab.plans.catalog import Provider
from rocelab.strict import quote
from rocelab.terminal import console
from rocelab.testbed.qemu.machine_spec import MEMORY_MB
from rocelab.testbed.qemu.qemu_exit import exit_text

if TYPE_CHECKING:
    from rocelab.testbed.package_image import Image
    from rocelab.testbed.qemu.snapshot_cache import Snapshot


@click.command()
@options.testbed_name
@click.option(
    "--provider",
    type=options.OneOf(Provider),
    default=Provider.QEMU.value,
    help="qemu: a VM per node; veth: one VM, its nodes joined by veth pairs.",
)
@options.icount
@options.kernel_line
@click.option(
    "--mtu",
    type=click.IntRange(min=1280, max=9000),
    default=4200,
    help="MTU of the data link.",
    metavar="BYTES",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=2, max=MAX_NODES),
    default=2,
    help="Number of nodes; more than two need a switch.",
    metavar="N",
)
@click.option(
    "--switches",
    type=click.IntRange(min=0, max=MAX_SWITCHES),
    default=0,
    help="Number of bridges in a row between the first node and the others.",
    metavar="N",
)
@click.option(
    "--memory",
    type=click.IntRange(min=512),
    default=MEMORY_MB,
    help="Memory per node.",
    metavar="MIB",
)
@click.option(
    "--ssh-port",
    type=click.IntRange(min=1024, max=65000),
    help="First SSH port on 127.0.0.1; any free ones by default.",
    metavar="PORT",
)
@options.packages
@click.option("--bare", is_flag=True, help="Boot only: no driver, no probes, no rxe device.")
def up(
    name: str,
    provider: Provider,
    icount: bool,
    line: str,
    mtu: int,
    nodes: int,
    switches: int,
    memory: int,
    ssh_port: int | None,
    package: tuple[str, ...],
    bare: bool,
) -> None:
    """Bring up nodes with the instrumented driver and leave them up.

    The nodes are virtual machines, by KVM where it works, else emulated. They boot once, are saved,
    and from then on are restored in seconds (`rocelab clean` removes what is saved). With
    --provider veth they are the ends of veth pairs in one machine and share a clock.
    `rocelab run` uses a running testbed that fits its plan. Take it down with `rocelab down`.
    """
    console.say("looking at this machine")
    from rocelab.plans.plan import TestbedPlan
    from rocelab.testbed import by_name
    from rocelab.testbed.package_image import Packages
    from rocelab.testbed.preparation import Payload
    from rocelab.testbed.qemu.state_folder import State

    if provider.own_hosts:
        raise UsageError(
            "`rocelab up` boots virtual machines, not your own hosts",
            cause="hosts of your own are up already",
            action="Prepare them with `rocelab hosts prepare`.",
        )
    if TestbedPlan(provider, line, mtu, nodes=nodes, switches=switches).lacks_switch:
        raise UsageError(
            f"a link has two ends: {nodes} nodes need a switch",
            cause="the testbed would have no switch",
            action="Add --switches 1.",
        )
    packages = Packages.parse(package)
    with State(name).hold():
        by_name.up(
            name,
            provider=provider,
            line=line,
            mtu=mtu,
            icount=icount,
            nodes=nodes,
            switches=switches,
            memory_mb=memory,
            ssh_port=ssh_port,
            packages=packages,
            payload=None if bare else Payload.of_line(line),
            say=console.say,
        )
    named = "" if name == options.DEFAULT else f"--name {name} "
    console.out().print(f"testbed {name} is up: try `rocelab ssh {named}n1`")


@click.command()
@options.testbed_name
@click.option("--all", "everything", is_flag=True, help="All your testbeds.")
def down(
    name: str,
    everything: bool,
) -> None:
    """Stop a testbed's nodes and remove its files."""
    from rocelab.testbed import by_name
    from rocelab.testbed.qemu.state_folder import State

    states = State.all()
    if not everything:
        states = [state for state in states if state.name == name]
        if not states:
            raise UsageError(
                f"no testbed {quote(name)[1:-1]} is up",
                cause="it was never brought up, or was taken down",
                action="List testbeds with `rocelab status`.",
            )
    for state in states:
        with state.hold():
            if state.alive():
                by_name.from_state(state).down()
            else:
                state.remove()
        console.out().print(f"testbed {state.name} is down")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("node", help="n1, n2, …", metavar="NODE")
@click.argument("command", nargs=-1, help="Run this instead of a shell.", metavar="[COMMAND]...")
@options.testbed_name
def ssh(
    node: str,
    command: tuple[str, ...],
    name: str,
) -> None:
    """Log in to a node, or run a command there.

    In a terminal, the command has one, too, as rxetop needs. The exit code is
    the command's, or 255 if the connection failed.
    """
    from rocelab.testbed import by_name

    testbed = by_name.attach(name)
    names = [candidate.name for candidate in testbed.nodes]
    if testbed.spec.switch is not None:
        names.append(testbed.spec.switch.name)
    if node not in names:
        raise UsageError(
            f"there is no node {quote(node)}",
            cause=f"testbed {name} has other nodes",
            action=f"Choose from {', '.join(names)}.",
        )
    target = testbed.target(node)
    argv = target.command(command) if command else ["ssh", *target.options(), "--", target.host]
    if sys.stdin.isatty() and sys.stdout.isatty():
        argv.insert(1, "-t")
    os.execvp("ssh", argv)  # noqa: S606


@click.command()
def clean() -> None:
    """Remove the saved machines: the next testbed boots again.

    rocelab boots a machine once, saves it, and restores it from then on. What it saves is a cache
    of bounded size, which `rocelab status` shows. So are the images with packages, which go as
    well.
    """
    from rocelab.testbed import package_image
    from rocelab.testbed.qemu import snapshot_cache

    count, size = snapshot_cache.clear()
    console.out().print(f"removed {count} saved machines ({_megabytes(size)})")
    count, size = package_image.clear()
    if count:
        console.out().print(f"removed {count} images with packages ({_megabytes(size)})")


@click.command()
@options.as_json
def status(
    as_json: bool,
) -> None:
    """List running testbeds, the state of their nodes, and the saved machines."""
    from rocelab.terminal import grid
    from rocelab.testbed import by_name, package_image
    from rocelab.testbed.qemu import snapshot_cache
    from rocelab.testbed.qemu.state_folder import State

    states, saved, images = State.all(), snapshot_cache.entries(), package_image.entries()
    if not states and not as_json:
        console.out().print("no testbed is up; bring one up with `rocelab up`")
        _print_saved(saved, images)
        return
    columns = ("testbed", "node", "state", "provider", "line", "accelerator", "ssh port")
    rows: list[tuple[str, ...]] = []
    listed: list[dict[str, str | int | None]] = []
    for state in states:
        if not state.alive():
            user = state.user
            console.say(
                f"testbed {state.name} is starting (process {user})"
                if user is not None
                else f"testbed {state.name} was killed: remove what is left with "
                f"`rocelab down --name {state.name}`"
            )
            continue
        try:
            testbed = by_name.from_state(state)
        except TestbedError as error:
            console.say(f"{error.what}: {error.cause}")
            continue
        spec, died = testbed.spec, state.exit_statuses()
        addresses = {node.name: node.link.ipv4 for node in testbed.nodes}
        if spec.switch is not None:
            addresses[spec.switch.name] = "-"
        name = spec.name
        for node, address in addresses.items():
            # all ends of a layout are in one machine
            machine = next((m for m in spec.machines if m.name == node), spec.nodes[0])
            cells: dict[str, str | int | None] = {
                "testbed": spec.name,
                "node": node,
                "state": f"died ({exit_text(died[machine.name])})"
                if machine.name in died
                else "up",
                "provider": spec.provider,
                "line": spec.line,
                "accelerator": spec.accelerator,
                "ssh_port": machine.ssh_port,
                "data_address": None if address == "-" else address,
                "used_by": state.user,
            }
            listed.append(cells)
            texts = [str(value) for value in list(cells.values())[1:7]]
            rows.append((name, *texts, address, "" if state.user is None else str(state.user)))
            name = ""
    if as_json:
        sizes = [(each.what, each.size) for each in saved]
        sizes += [(each.what, each.size) for each in images]
        saved_sizes = [{"what": label, "bytes": size} for label, size in sizes]
        console.print_json({"schema": "rocelab.status/2", "nodes": listed, "saved": saved_sizes})
        return
    heads = (*columns, "data address", "used by")
    for table in grid.fit(heads, rows, console.out().width, keys=2):
        console.out().print(table)
    _print_saved(saved, images)


def _print_saved(saved: Sequence[Snapshot], images: Sequence[Image]) -> None:
    """Say how many machines are saved, and images with packages; nothing if there are none."""
    for label, sizes in (
        ("saved machines", [each.size for each in saved]),
        ("images with packages", [each.size for each in images]),
    ):
        if sizes:
            total = _megabytes(sum(sizes))
            console.out().print(f"{len(sizes)} {label} ({total}); remove them: `rocelab clean`")


def _megabytes(size: int) -> str:
    return f"{units.number(size / 1e6, 3)} MB"
