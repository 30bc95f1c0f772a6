# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab wireshark install | uninstall`: the plugin, the profile and the extcap."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocelab.cli import options
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.wireshark.folders import Folders

app = options.Group(
    name="wireshark",
    help="Install rocelab's plugin, profile and extcap into Wireshark.",
)


def _print_paths(word: str, paths: list[Path]) -> None:
    for path in paths:
        console.out().print(console.clean(f"{word} {path}"), markup=False)


def _is_loaded() -> bool:
    """Whether Wireshark loads the plugin; for root, that depends on its version."""
    from rocelab.wireshark.folders import report
    from rocelab.wireshark.install import PLUGIN

    return any(line.split("\t")[0] == PLUGIN for line in report("plugins").splitlines())


@app.command()
@click.option(
    "--force", is_flag=True, help="Overwrite files that rocelab did not write or that were changed."
)
def install(
    force: bool,
) -> None:
    """Install the plugin, the profile and the live interfaces.

    They go into your personal folders, as `tshark -G folders` names them. Your own files are not
    overwritten. Use the profile with `wireshark -C rocelab`.
    """
    from rocelab.wireshark import install as work
    from rocelab.wireshark.folders import folders

    where = folders()
    outcome = work.install(where, force=force)
    _print_paths("replaced", outcome.replaced)
    _print_paths("installed", [path for path in outcome.done if path not in outcome.replaced])
    _warn_of_extcap(where)
    if not _is_loaded():
        why = "you are root" if os.geteuid() == 0 else "Lua is disabled in its preferences"
        console.err().print(
            "rocelab: warning: tshark does not load the plugin\n"
            f"  likely cause: {why}; since 4.4 Wireshark runs no personal scripts as root\n"
            "  what to do: install it as the user who runs Wireshark",
            markup=False,
        )


@app.command()
def uninstall() -> None:
    """Remove what install added.

    Files that were changed since are kept and listed.
    """
    from rocelab.wireshark import install as work
    from rocelab.wireshark.folders import folders

    outcome = work.uninstall(folders())
    _print_paths("removed", outcome.done)
    _print_paths("kept, changed since:", outcome.kept)
    if not outcome.done and not outcome.kept:
        console.out().print("nothing was installed")


def _warn_of_extcap(where: Folders) -> None:
    """Wireshark before 4.2 looks for extcaps only in the system's folder."""
    from rocelab.wireshark.install import EXTCAP

    system, ours = where.system_extcap, where.extcap / EXTCAP
    if system is None:
        return
    try:
        if (system / EXTCAP).samefile(ours):
            return
    except OSError:
        pass
    console.err().print(
        console.clean(
            f"rocelab: warning: Wireshark does not look for live interfaces in {where.extcap}\n"
            f"  likely cause: before 4.2 it searches only {system}, which all users share\n"
            f"  what to do: WIRESHARK_EXTCAP_DIR={shlex.quote(str(ours.parent))} wireshark\n"
            "              or, for all users, `make install` as root in a clone"
        ),
        markup=False,
        soft_wrap=True,
    )
