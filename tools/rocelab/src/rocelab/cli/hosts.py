# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab hosts prepare | restore | status`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocelab.cli import options
from rocelab.errors import UsageError
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.plans.plan import Plan
    from rocelab.testbed.ssh.inventory import Host

app = options.Group(
    name="hosts",
    help="Prepare your own hosts for measuring, and restore them.",
)

_names = click.argument(
    "names", nargs=-1, metavar="[NAME]...", help="Hosts of the inventory; all by default."
)

_LOGIN = "logging in to the hosts"


def select_hosts(path: Path | None, names: Sequence[str] = ()) -> tuple[Host, ...]:
    """Load the inventory's hosts, or only those in `names`. Raises UsageError."""
    from rocelab.testbed.ssh import inventory

    hosts = inventory.load(path or inventory.default_path())
    known = [host.name for host in hosts]
    for name in names:
        if name not in known:
            raise UsageError(
                f"the inventory has no host {name!a:.40}",
                cause=f"{path or inventory.default_path()} does not list it",
                action=f"Choose from {', '.join(known)}.",
            )
    return tuple(host for host in hosts if not names or host.name in names)


def say_names(hosts: tuple[Host, ...]) -> None:
    """Say which host is which, where a name is not that by which SSH knows the host."""
    if which := [f"{host.name} is {host.host}" for host in hosts if host.name != host.host]:
        console.say(", ".join(which))


def hosts_of(plan: Plan, path: Path | None, names: Sequence[str] = ()) -> tuple[Host, ...]:
    """Load the hosts that a plan runs on, if an inventory lists them. Raises UsageError."""
    from rocelab.plans.catalog import Provider

    # a job's allocation says which nodes there are
    listed = plan.testbed.provider == Provider.SSH or (
        plan.testbed.provider == Provider.SLURM and path is not None
    )
    return select_hosts(path, names) if listed else ()


@app.command()
@click.option("--netdev", help="The data interface of each node; found by default.", metavar="NAME")
def slurm(
    netdev: str | None,
) -> None:
    """Print an inventory of the nodes of the Slurm allocation that this runs in."""
    from rocelab.testbed.slurm import allocation, slurm_testbed
    from rocelab.testbed.ssh import inventory

    job = allocation.current()
    text = inventory.inventory_text(slurm_testbed.find_hosts(job, job.nodes, netdev or ""))
    console.out().print(text, end="", markup=False)


@app.command()
@_names
@options.inventory
@click.option("--dry-run", is_flag=True, help="Print what would run as root, and change nothing.")
def prepare(
    names: tuple[str, ...],
    inventory: Path | None,
    dry_run: bool,
) -> None:
    """Build and load the instrumented driver and probes on each host.

    Each host builds for its running kernel with its own compiler and headers, in a temporary
    folder. Its state (driver, rxe devices, files of the same names) is first recorded in
    /var/lib/rocelab on the host; nothing else is changed.
    """
    console.say(_LOGIN)
    from rocelab.testbed import lease
    from rocelab.testbed.hosts import dry_run as dry
    from rocelab.testbed.hosts.prepare_host import prepare as one
    from rocelab.testbed.node.parallel import at_once
    from rocelab.testbed.ssh.connect import connect

    hosts = select_hosts(inventory, names)
    say_names(hosts)
    with connect(hosts) as nodes:
        if dry_run:
            for node, argvs in zip(nodes, at_once(dry.commands, nodes), strict=True):
                for line in argvs:
                    console.out().print(console.clean(f"{node.name}: {line}"), markup=False)
            return
        # a run that measures there must not lose its driver
        with lease.hold(nodes):
            at_once(lambda node: one(node, console.say), nodes)
    console.out().print("prepared; undo with `rocelab hosts restore`")


@app.command()
@_names
@options.inventory
def restore(
    names: tuple[str, ...],
    inventory: Path | None,
) -> None:
    """Restore each host's earlier driver, rxe devices and files."""
    console.say(_LOGIN)
    from rocelab.testbed import lease
    from rocelab.testbed.hosts.restore_host import restore as one
    from rocelab.testbed.node.parallel import at_once
    from rocelab.testbed.ssh.connect import connect

    hosts = select_hosts(inventory, names)
    say_names(hosts)
    with connect(hosts) as nodes, lease.hold(nodes):
        for node, done in zip(nodes, at_once(one, nodes), strict=True):
            word = "restored" if done else "was not prepared: nothing to do"
            console.out().print(f"{node.name}: {word}")


@app.command()
@_names
@options.inventory
def status(
    names: tuple[str, ...],
    inventory: Path | None,
) -> None:
    """Show what each host runs and whether it is prepared."""
    console.say(_LOGIN)
    from rich.markup import escape
    from rich.table import Table

    from rocelab.testbed.hosts import host_state
    from rocelab.testbed.node.parallel import at_once
    from rocelab.testbed.ssh.connect import connect

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("host", "kernel", "rdma_rxe", "rxe devices", "prepared"):
        table.add_column(column)
    hosts = select_hosts(inventory, names)
    say_names(hosts)
    with connect(hosts) as nodes:
        for node, now, was in zip(
            nodes,
            at_once(host_state.read, nodes),
            at_once(host_state.read_saved, nodes),
            strict=True,
        ):
            devices = ", ".join(f"{device} on {netdev}" for device, netdev in now.devices)
            driver = "not loaded" if now.version is None else now.version or "stock"
            cells = (node.name, now.release, driver, devices or "none", "yes" if was else "no")
            table.add_row(*map(escape, cells))
    console.out().print(table)
