# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab hosts prepare | restore | status`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from rocelab.cli import console
from rocelab.errors import UsageError
from rocelab.node.parallel import at_once
from rocelab.provider.ssh import inventory
from rocelab.provider.ssh.inventory import Host

app = typer.Typer(
    name="hosts",
    help="Prepare hosts of your own for measuring, and put back what was there.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Of the inventory; all if absent.", metavar="NAME"),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--inventory",
        help="The hosts, as TOML; ~/.config/rocelab/hosts.toml if absent.",
        metavar="FILE",
    ),
]


def chosen(path: Path | None, names: list[str] | None = None) -> tuple[Host, ...]:
    """Hosts of an inventory, or those of `names`. Raises UsageError."""
    hosts = inventory.load(path or inventory.default_path())
    known = [host.name for host in hosts]
    for name in names or ():
        if name not in known:
            raise UsageError(
                f"the inventory names no host {name!a:.40}",
                action=f"choose from {', '.join(known)}",
            )
    return tuple(host for host in hosts if not names or host.name in names)


@app.command()
def prepare(names: Names = None, file: File = None) -> None:
    """Build the instrumented driver and the probes on each host, and load them.

    For the kernel that runs there, with the host's own compiler and headers, in a folder that is
    gone afterwards. What was there (driver, rxe devices, files of the same names) is written down
    first, in /var/lib/rocelab of the host; nothing else is changed.
    """
    from rocelab.hosts.prepare import prepare as one
    from rocelab.provider.ssh.connect import connected

    with connected(chosen(file, names)) as nodes:
        at_once(lambda node: one(node, console.say), nodes)
    console.out.print("prepared; put back what was there with `rocelab hosts restore`")


@app.command()
def restore(names: Names = None, file: File = None) -> None:
    """Put back the driver, the rxe devices and the files that each host had."""
    from rocelab.hosts.restore import restore as one
    from rocelab.provider.ssh.connect import connected

    with connected(chosen(file, names)) as nodes:
        for node, done in zip(nodes, at_once(one, nodes), strict=True):
            word = "as it was before" if done else "was not prepared: nothing to do"
            console.out.print(f"{node.name}: {word}")


@app.command()
def status(names: Names = None, file: File = None) -> None:
    """Say what each host runs, and whether it is prepared."""
    from rocelab.hosts import before
    from rocelab.provider.ssh.connect import connected

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("host", "kernel", "rdma_rxe", "rxe devices", "prepared"):
        table.add_column(column)
    with connected(chosen(file, names)) as nodes:
        for node, now, was in zip(
            nodes, at_once(before.take, nodes), at_once(before.kept, nodes), strict=True
        ):
            devices = ", ".join(f"{device} on {netdev}" for device, netdev in now.devices)
            driver = "not loaded" if now.version is None else now.version or "stock"
            cells = (node.name, now.release, driver, devices or "none", "yes" if was else "no")
            table.add_row(*map(escape, cells))
    console.out.print(table)
