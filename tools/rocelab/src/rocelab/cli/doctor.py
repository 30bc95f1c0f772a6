# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab doctor`: what this machine has, what it lacks, and the command that installs it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from rocelab.cli import options
from rocelab.cli.hosts import say_names, select_hosts
from rocelab.cli.options import DEFAULT
from rocelab.errors import ExitCode, RocelabError, UsageError
from rocelab.plans.catalog import TRANSPORTS
from rocelab.terminal import console
from rocelab.testbed.node.parallel import threads
from rocelab.testbed.qemu.machine_spec import MEMORY_MB

_ON_VIRTUAL_NODES = [name for name, known in TRANSPORTS.items() if known.by != "adapter"]

_AT_ONCE = 6
"""Checks that run at once: sshd allows ten sessions on a connection."""


@dataclass(frozen=True)
class Check:
    """One requirement; `probe` returns what it found or raises RocelabError."""

    name: str
    probe: Callable[[], str]
    alone: bool = True
    """Whether nothing else may run meanwhile."""


def _program(name: str, package: str) -> Callable[[], str]:
    def probe() -> str:
        path = shutil.which(name)
        if path is None:
            raise RocelabError(
                f"{name} is not installed", action=f"Run `apt-get install {package}`."
            )
        return path

    return probe


def _host(line: str) -> list[Check]:
    from rocelab.testbed import artifacts
    from rocelab.testbed.qemu import accelerator_probe
    from rocelab.testbed.qemu.host_check import check_host

    def capacity() -> str:
        check_host(2, MEMORY_MB, Path.cwd())
        return "enough memory and disk for two nodes"

    def accelerator() -> str:
        if accelerator_probe.choose(artifacts.image(line)) == "kvm":
            return "KVM boots the node's kernel"
        return (
            "emulation that counts instructions (icount): KVM cannot boot a kernel here, so no "
            "time will be real"
        )

    def driver() -> str:
        built = artifacts.driver(line)
        return f"rdma_rxe rocelab-{built.patch_id} for {built.release}"

    return [
        Check("qemu", _program("qemu-system-x86_64", "qemu-system-x86")),
        Check("ssh", _program("ssh", "openssh-client")),
        Check("zstd", _program("zstd", "zstd")),
        Check("mmdebstrap", _program("mmdebstrap", "mmdebstrap")),
        Check("bwrap", _program("bwrap", "bubblewrap")),
        Check("tshark", _program("tshark", "tshark")),
        Check("capacity", capacity),
        Check("node image", lambda: str(artifacts.image(line))),
        Check("driver", driver),
        Check("programs", lambda: ", ".join(map(str, artifacts.programs(line)))),
        Check("accelerator", accelerator),
    ]


def _mpi(name: str, transport: str) -> list[Check]:
    """What a testbed's nodes need to run MPI over `transport`."""
    from rocelab.measure.mpi import launch_check as mpi
    from rocelab.measure.rig import Rig
    from rocelab.testbed import by_name

    testbed = by_name.attach(name)
    testbed.alive()
    checks = mpi.launch_checks(Rig.on(testbed), TRANSPORTS[transport])
    return [Check(check.name, check.run) for check in checks]


@contextmanager
def _hosts(file: Path | None, transport: str) -> Iterator[Iterator[Check]]:
    """What the inventory's hosts need for measuring over `transport`."""
    from rocelab.measure import host_checks

    hosts = select_hosts(file)
    say_names(hosts)
    with host_checks.open_checks(hosts, TRANSPORTS[transport]) as checks:
        yield (Check(check.name, check.run, check.alone) for check in checks)


def _try_all(checks: Iterable[Check]) -> Iterator[tuple[Check, str | RocelabError]]:
    """Yield each check with what it found or what is wrong, in order; many run at once.

    One that must run alone begins when those before it have ended.
    """

    def outcome(check: Check) -> str | RocelabError:
        try:
            return check.probe()
        except RocelabError as error:
            return error

    begun: list[tuple[Check, Callable[[], str | RocelabError]]] = []
    with threads(_AT_ONCE) as calls:
        for check in checks:
            if not check.alone:
                begun.append((check, calls.begin(outcome, check)))
                continue
            yield from ((each, result()) for each, result in begun)
            begun.clear()
            yield check, outcome(check)
        yield from ((each, result()) for each, result in begun)


def _answers(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """Try each check; return what it found, or what is wrong with it."""
    answers: list[dict[str, Any]] = []
    for check, result in _try_all(checks):
        if isinstance(result, RocelabError):
            error = {"what": result.what, "cause": result.cause, "action": result.action}
            answers.append({"check": check.name, "ok": False, **error})
        else:
            answers.append({"check": check.name, "ok": True, "found": result})
    return answers


_INDENT = " " * 9
"""Of what belongs to the check above: no host's line begins where a check does."""


def _show(checks: Iterable[Check], *, bad: str, causes: bool) -> int:
    """Try and print each check; return how many failed."""
    failed = 0
    for check, result in _try_all(checks):
        if isinstance(result, RocelabError):
            failed += 1
            console.out().print(f"[red]{bad:8}[/red] {check.name}: ", end="")
            console.out().print(console.block(result.what, _INDENT), markup=False)
            for text in (result.cause if causes else "", result.action):
                if text:
                    console.out().print(_INDENT + console.block(text, _INDENT), markup=False)
        else:
            console.out().print(f"[green]ok[/green]       {check.name}: ", end="")
            console.out().print(console.block(result, _INDENT), markup=False)
    return failed


@click.command()
@options.kernel_line
@click.option("--mpi", is_flag=True, help="Check that a running testbed's nodes can run MPI.")
@click.option("--hosts", is_flag=True, help="Check the hosts of the inventory.")
@click.option(
    "--transport",
    default="rxe-v2",
    help=f"The transport to try: with --mpi {', '.join(_ON_VIRTUAL_NODES)}, with --hosts any.",
    metavar="NAME",
)
@click.option("--name", default=DEFAULT, help="With --mpi: the testbed's name.", metavar="NAME")
@options.inventory
@options.as_json
def doctor(
    line: str,
    mpi: bool,
    hosts: bool,
    transport: str,
    name: str,
    inventory: Path | None,
    as_json: bool,
) -> None:
    """Check what this machine has and say how to get what it lacks.

    With --mpi, check what a rank on each of a testbed's nodes needs, let them exchange messages,
    and prove the transport from the wire. With --hosts, check the inventory's hosts: login, clocks,
    driver and probes, networks both ways, MTU end to end, capture, GIDs, locked memory, a message
    over the devices, and MPI between all. Exits with 3 if anything is missing or wrong.
    """
    if hosts and mpi:
        raise UsageError(
            "--hosts and --mpi exclude each other",
            action="Leave out --mpi: --hosts tries MPI, too.",
        )
    allowed = list(TRANSPORTS) if hosts else _ON_VIRTUAL_NODES
    if transport not in allowed:
        where = "rocelab" if hosts else "a testbed of virtual machines"
        raise UsageError(
            f"{where} has no transport {transport!r}",
            cause="its devices carry only some of the transports",
            action=f"Choose from {', '.join(allowed)}.",
        )
    console.say("checking the hosts" if hosts else "checking the nodes" if mpi else "checking")
    with ExitStack() as opened:
        checks: Iterable[Check]
        if hosts:
            checks = opened.enter_context(_hosts(inventory, transport))
        else:
            checks = _mpi(name, transport) if mpi else _host(line)
        if as_json:
            answers = _answers(checks)
            console.print_json({"schema": "rocelab.doctor/1", "checks": answers})
            failed = sum(not answer["ok"] for answer in answers)
        else:
            failed = _show(checks, bad="wrong" if hosts else "missing", causes=hosts or mpi)
    if failed:
        raise Exit(int(ExitCode.MISSING))
