# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab doctor`: what this machine has, what it lacks, and the command that mends it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rocelab import artifacts
from rocelab.bench.catalog import TRANSPORTS
from rocelab.cli import console
from rocelab.cli.testbed import DEFAULT
from rocelab.errors import ExitCode, RocelabError
from rocelab.provider import testbeds
from rocelab.provider.qemu import accel
from rocelab.provider.qemu import testbed as qemu


class Transport(StrEnum):
    """Transports that the embedded testbed has."""

    TCP = "tcp"
    RXE_V1 = "rxe-v1"
    RXE_V2 = "rxe-v2"


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


def _mpi(name: str, transport: Transport) -> list[Check]:
    """What the nodes of a testbed need to run MPI over `transport`."""
    from rocelab.run.mpi import doctor as mpi
    from rocelab.run.rig import Rig

    testbed = testbeds.attach(name)
    testbed.alive()
    found = mpi.looks(Rig.on(testbed), TRANSPORTS[transport.value])
    return [Check(look.name, look.found) for look in found]


def doctor(
    line: Annotated[str, typer.Option(help="Kernel line.", metavar="LINE")] = "6.12",
    mpi: Annotated[
        bool,
        typer.Option("--mpi", help="Check the nodes of a testbed that is up, for MPI."),
    ] = False,
    transport: Annotated[
        Transport, typer.Option(help="With --mpi: the transport to try.")
    ] = Transport.RXE_V2,
    name: Annotated[
        str, typer.Option("--name", help="With --mpi: the testbed's name.", metavar="NAME")
    ] = DEFAULT,
) -> None:
    """Check what this machine has, and say what to mend.

    With --mpi, what two ranks on a testbed's nodes need, and an exchange between them, proven by
    the wire. Exits with 3 when something is missing.
    """
    lacking = 0
    for check in _mpi(name, transport) if mpi else _host(line):
        try:
            found = check.look()
        except RocelabError as error:
            lacking += 1
            console.out.print(f"[red]missing[/red]  {check.name}: ", end="")
            console.out.print(console.clean(error.what), markup=False)
            if mpi and error.cause:
                console.out.print(f"         {console.clean(error.cause)}", markup=False)
            if error.action:
                console.out.print(f"         {console.clean(error.action)}", markup=False)
        else:
            console.out.print(f"[green]ok[/green]       {check.name}: ", end="")
            console.out.print(console.clean(found), markup=False)
    if lacking:
        raise typer.Exit(int(ExitCode.MISSING))
