# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab wireshark install | uninstall`: the plugin and the profile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rocelab.cli import console
from rocelab.errors import UsageError

app = typer.Typer(
    name="wireshark",
    help="Put rocelab's plugin and profile into Wireshark.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


def _tell(word: str, paths: list[Path]) -> None:
    for path in paths:
        console.out.print(console.clean(f"{word} {path}"), markup=False)


def _loaded() -> bool:
    """Wireshark runs the plugin: old and new versions differ in what they run for root."""
    from rocelab.wireshark.folders import report
    from rocelab.wireshark.install import PLUGIN

    return any(line.split("\t")[0] == PLUGIN for line in report("plugins").splitlines())


@app.command()
def install(
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that are not as rocelab left them.")
    ] = False,
) -> None:
    """Install the plugin rocelab.lua and the profile "rocelab".

    They go into your own folders, as `tshark -G folders` names them. Files of your own are not
    overwritten. Use the profile with `wireshark -C rocelab`.
    """
    from rocelab.wireshark import install as work
    from rocelab.wireshark.folders import folders

    try:
        outcome = work.install(folders(), force=force)
    except OSError as error:
        raise _unwritable(error) from error
    _tell("replaced", outcome.replaced)
    _tell("installed", [path for path in outcome.done if path not in outcome.replaced])
    if not _loaded():
        why = "you are root" if os.geteuid() == 0 else "Lua is disabled in its preferences"
        console.err.print(
            "rocelab: warning: tshark does not run the plugin\n"
            f"  likely cause: {why}; Wireshark from 4.4 on runs no personal scripts for root\n"
            "  what to do: install it as the person who runs Wireshark",
            markup=False,
        )


@app.command()
def uninstall() -> None:
    """Remove what install put there.

    Files that were changed since stay, and are named.
    """
    from rocelab.wireshark import install as work
    from rocelab.wireshark.folders import folders

    try:
        outcome = work.uninstall(folders())
    except OSError as error:
        raise _unwritable(error) from error
    _tell("removed", outcome.done)
    _tell("kept, changed since:", outcome.kept)
    if not outcome.done and not outcome.kept:
        console.out.print("nothing was installed")


def _unwritable(error: OSError) -> UsageError:
    return UsageError(
        f"cannot write {error.filename}",
        cause=str(error.strerror),
        action="check the owner and the free space of that folder",
    )
