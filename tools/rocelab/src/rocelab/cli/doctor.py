# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab doctor`: what this machine has, what it lacks, and the command that mends it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rocelab import artifacts
from rocelab.cli import console
from rocelab.errors import ExitCode, RocelabError
from rocelab.provider.qemu import accel
from rocelab.provider.qemu import testbed as qemu


@dataclass(frozen=True)
class Check:
    """One requirement; `look` gives what was found, or raises RocelabError."""

    name: str
    look: Callable[[], str]


def _program(name: str, package: str) -> Callable[[], str]:
    def look() -> str:
        path = shutil.which(name)
        if path is None:
            raise RocelabError(f"{name} is not installed", action=f"apt-get install {package}")
        return path

    return look


def _host(line: str) -> list[Check]:
    def capacity() -> str:
        qemu.check_host(2, qemu.MEMORY_MB, Path.cwd())
        return "enough memory and disk for two nodes"

    def accelerator() -> str:
        if accel.choose(artifacts.image(line)) == "kvm":
            return "KVM boots the node's kernel"
        return "emulation (TCG): no KVM that boots a kernel; times will be emulated ones"

    def driver() -> str:
        built = artifacts.driver(line)
        return f"rdma_rxe rocelab-{built.patch_id} for {built.release}"

    return [
        Check("qemu", _program("qemu-system-x86_64", "qemu-system-x86")),
        Check("ssh", _program("ssh", "openssh-client")),
        Check("mmdebstrap", _program("mmdebstrap", "mmdebstrap")),
        Check("bwrap", _program("bwrap", "bubblewrap")),
        Check("tshark", _program("tshark", "tshark")),
        Check("capacity", capacity),
        Check("node image", lambda: str(artifacts.image(line))),
        Check("driver", driver),
        Check("programs", lambda: ", ".join(map(str, artifacts.programs(line)))),
        Check("accelerator", accelerator),
    ]


def doctor(
    line: Annotated[str, typer.Option(help="Kernel line.", metavar="LINE")] = "6.12",
) -> None:
    """Check what this machine has, and say what to mend.

    Exits with 3 when something is missing.
    """
    lacking = 0
    for check in _host(line):
        try:
            found = check.look()
        except RocelabError as error:
            lacking += 1
            console.out.print(f"[red]missing[/red]  {check.name}: ", end="")
            console.out.print(console.clean(error.what), markup=False)
            if error.action:
                console.out.print(f"         {console.clean(error.action)}", markup=False)
        else:
            console.out.print(f"[green]ok[/green]       {check.name}: ", end="")
            console.out.print(console.clean(found), markup=False)
    if lacking:
        raise typer.Exit(int(ExitCode.MISSING))
