# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab exec`: run a user's own command on nodes."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from rocelab.cli import options, watched_command
from rocelab.conditions import check_new_file, explain, system_error
from rocelab.errors import ExitCode, RocelabError, UsageError
from rocelab.limits import MAX_DELAY_US, MAX_LOSS_PPM, MAX_RATE_MBIT
from rocelab.strict import quote
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.measure.command.request import On

_MAX_SECONDS = 1_000_000


class Over(StrEnum):
    """Transports between nodes that rocelab makes."""

    V1 = "rxe-v1"
    V2 = "rxe-v2"
    TCP = "tcp"


@click.command("exec", context_settings={"allow_interspersed_args": False})
@click.argument(
    "command", nargs=-1, required=True, help="The command and its arguments.", metavar="-- COMMAND…"
)
@options.testbed_name
@click.option(
    "--on",
    default="n1",
    help="n1, n2, …: that node; a number: so many nodes; all: all of the testbed.",
    metavar="WHERE",
)
@click.option(
    "--server",
    help="Start this on n2 first; COMMAND then runs on n1, as its client.",
    metavar="COMMAND",
)
@click.option(
    "--ready",
    help="Start the client at tcp:PORT, rdma_cm:PORT, line:TEXT or delay:SECONDS; by default as "
    "soon as the server listens anywhere.",
    metavar="WHEN",
)
@click.option(
    "--transport",
    type=options.OneOf(Over),
    default=Over.V2.value,
    help="What the variables name, and rdma_cm uses.",
)
@click.option(
    "--timeout",
    type=click.IntRange(min=1, max=_MAX_SECONDS),
    help="End the command after so long.",
    metavar="SECONDS",
)
@click.option("--tty", "-t", is_flag=True, help="Give the command a terminal.")
@click.option("--no-prefix", is_flag=True, help="Put no node's name in front of lines.")
@click.option(
    "--folder",
    type=options.PATH,
    help="Copy this folder to the node and run in the copy; by default the current one.",
    metavar="DIR",
)
@click.option("--no-folder", is_flag=True, help="Run in an empty folder.")
@click.option(
    "--rw", "write_back", is_flag=True, help="Copy what changed in the folder back afterwards."
)
@click.option(
    "--copy",
    multiple=True,
    help="Copy this file into the folder first; repeatable.",
    metavar="FILE[:TO]",
)
@click.option(
    "--get",
    multiple=True,
    help="Copy this file of the node here afterwards; repeatable.",
    metavar="FILE[:TO]",
)
@click.option(
    "--capture",
    type=options.PATH,
    help="Capture the link between the nodes meanwhile, for `rocelab analyze`.",
    metavar="FILE",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Print what it cost and what went wrong: --stages, --cpu and a capture.",
)
@click.option("--stages", is_flag=True, help="Watch the driver's stages.")
@click.option("--cpu", is_flag=True, help="Watch whose work processors do.")
@click.option(
    "--loss",
    type=click.IntRange(min=0, max=MAX_LOSS_PPM),
    default=0,
    help="Drop so many of a million packets of each node.",
    metavar="PPM",
)
@click.option(
    "--delay",
    type=click.IntRange(min=0, max=MAX_DELAY_US),
    default=0,
    help="Delay what each node sends.",
    metavar="MICROSECONDS",
)
@click.option(
    "--rate",
    type=click.IntRange(min=0, max=MAX_RATE_MBIT),
    default=0,
    help="Limit what each node sends.",
    metavar="MBIT",
)
@click.option(
    "--faults",
    type=options.PATH,
    help="Have the faults of this TOML file happen: tables as a plan's [testbed.faults.…].",
    metavar="FILE",
)
@click.option(
    "--out",
    type=options.PATH,
    default=Path("runs"),
    help="Where to put the run folder of a watched command.",
    metavar="DIR",
)
@click.option("--line", help="Kernel line of the nodes.", metavar="LINE")
@options.packages
@click.option(
    "--verbose", "-v", is_flag=True, help="Say what is done, even if stderr is no terminal."
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but the command's output.")
def execute(
    command: tuple[str, ...],
    name: str,
    on: str,
    server: str | None,
    ready: str | None,
    transport: Over,
    timeout: int | None,
    tty: bool,
    no_prefix: bool,
    folder: Path | None,
    no_folder: bool,
    write_back: bool,
    copy: tuple[str, ...],
    get: tuple[str, ...],
    capture: Path | None,
    watch: bool,
    stages: bool,
    cpu: bool,
    loss: int,
    delay: int,
    rate: int,
    faults: Path | None,
    out: Path,
    line: str | None,
    package: tuple[str, ...],
    verbose: bool,
    quiet: bool,
) -> None:
    """Run your own command on nodes, with its streams and its exit code.

    \b
    Examples:
      rocelab exec -- ibv_devinfo
      rocelab exec --server 'rping -s' -- rping -c -a {peer} -C 10
      rocelab exec --on all --timeout 60 -- ./my-test --verbose

    Runs on the nodes of testbed NAME if it is up, else on two that are made for it and gone
    afterwards; on one if the command has no server and no word {peer}. With several nodes each line
    has its node's name in front, the worst exit code counts, and only the first gets the input.
    Signals go to the command.

    It has the variables ROCELAB_DEVICE, ROCELAB_PORT, ROCELAB_GID_INDEX, ROCELAB_ADDRESS,
    ROCELAB_PEER_ADDRESS, ROCELAB_NETDEV and ROCELAB_MTU; {device}, {gid}, {address}, {netdev} and
    {peer} in its words stand for five of them.

    With --watch, or a part of it, it prints on stderr what `rocelab run` prints, findings first,
    and leaves a run folder with a report. --loss, --delay, --rate and --faults do so, too.

    It runs in a copy of the current folder, unless that has more than 16 MiB, or is your home or
    the system's: then name it with --folder. The copy is gone afterwards. --rw copies back what is
    new or changed, and deletes nothing.
    """
    if quiet or not (verbose or sys.stderr.isatty()):
        console.be_quiet()
    if line is not None:
        options.check_line(line)
    from rocelab.measure.command import conduct, files, nodes
    from rocelab.measure.command.request import On, Request
    from rocelab.plans.catalog import TRANSPORTS, Probe
    from rocelab.plans.plan import LinkPlan
    from rocelab.plans.ready import Ready
    from rocelab.testbed.package_image import Packages

    packages = Packages.parse(package)
    where = On.parse(on)
    _check_options(
        where,
        server=server,
        ready=ready,
        folder=folder is not None or write_back,
        no_folder=no_folder,
        back=write_back or bool(get),
        tty=tty,
    )
    if capture is not None:
        _check_capture(capture)
    watching = watched_command.observation(
        probes={Probe.RXESTAT: watch or stages, Probe.RXECPU: watch or cpu},
        watch=watch,
        link=LinkPlan(rate_mbit=rate, delay_us=delay, loss_ppm=loss),
        faults=faults,
        out=out,
    )
    if watching is not None and (capture is not None or tty or where != On(node=1)):
        raise UsageError(
            "what is watched runs on n1, with a server or without one",
            cause="its run folder has the capture; --on, --tty and --capture do not go with it",
            action="Leave them out.",
        )
    request = Request(
        tuple(command),
        on=where,
        server=_words(server),
        ready=Ready() if ready is None else Ready.parse(ready),
        transport=TRANSPORTS[transport],
        seconds=timeout,
        prefix=not no_prefix,
        tty=tty,
        files=files.Files(
            None if no_folder else _folder(folder, named=folder is not None or write_back),
            writes_back=write_back,
            copied=tuple(map(files.parse_copy, copy)),
            fetched=tuple(map(files.parse_get, get)),
        ),
        capture=capture,
        alone=watching is not None,
    )
    try:
        with nodes.ready(request, name, line, packages, console.say) as testbed:
            if watching is None:
                code = conduct.run(request, testbed).status
            else:
                code = watched_command.run(watching, request, testbed, quiet=quiet)
    except UsageError:
        raise
    except OSError as error:
        known = explain(error)
        if known is None:
            raise
        console.show_error(known)
        code = ExitCode.NOT_RUN
    except RocelabError as error:
        # the other codes are the command's
        console.show_error(error)
        own = (ExitCode.TIMED_OUT, ExitCode.NOT_EXECUTABLE, ExitCode.NOT_FOUND)
        code = error.exit_code if error.exit_code in own else ExitCode.NOT_RUN
    raise Exit(int(code))


def _check_options(
    where: On,
    *,
    server: str | None,
    ready: str | None,
    folder: bool,
    no_folder: bool,
    back: bool,
    tty: bool,
) -> None:
    """Raise UsageError for options that exclude each other.

    `folder`: whether one was named; `back`: whether anything is copied back.
    """
    from rocelab.measure.command.request import On

    if ready is not None and server is None:
        raise UsageError(
            "--ready needs --server",
            cause="without a server there is nothing to wait for",
            action="Leave it out, or name the server.",
        )
    if server is not None and where != On(node=1):
        raise UsageError(
            "--on cannot be used with --server",
            cause="the server runs on n2, and its client on n1",
            action="Leave one of them out.",
        )
    if no_folder and folder:
        raise UsageError(
            "--no-folder excludes --folder and --rw",
            cause="they say what to do with a folder",
            action="Leave it out.",
        )
    if back and server is None and where.several:
        raise UsageError(
            "--rw and --get need one node",
            cause="files of several nodes would overwrite each other",
            action="Run the command with --on n1, n2, ….",
        )
    if tty and (server is not None or not sys.stdin.isatty() or where.several):
        raise UsageError(
            "--tty needs a terminal and one node",
            cause="standard input is no terminal, or several commands would share it",
            action="Leave it out.",
        )


_PCAP = b"\xb2\xa1\x02\x00\x04\x00"
"""Of a pcap's first bytes: the end of either magic number, and version 2.4."""


def _check_capture(path: Path) -> None:
    """Raise UsageError unless a file can be made there."""
    elsewhere = "Name another file with --capture."
    check_new_file(path, "a capture", action=elsewhere, begins=_PCAP)
    existed = path.exists()
    try:
        path.open("ab").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise system_error(
            error, f"cannot write a capture to {quote(str(path))}", action=elsewhere
        ) from error


def _folder(folder: Path | None, *, named: bool) -> Path | None:
    """Return the folder to copy, None for the current one if nobody named it and it is unfit."""
    from rocelab.measure.command import files

    chosen = Path.cwd() if folder is None else folder
    if named:
        if not chosen.is_dir():
            raise UsageError(
                f"--folder {quote(str(chosen))} is no folder",
                cause="it does not exist, or is a file",
                action="Name a folder; a single file goes with --copy.",
            )
        files.check(chosen)
        return chosen
    if not files.may_go_unnamed(chosen):
        console.say("the current folder is not copied: it is large, your home or the system's")
        return None
    return chosen


def _words(server: str | None) -> tuple[str, ...]:
    """Split the server's command line. Raises UsageError."""
    if server is None:
        return ()
    try:
        words = tuple(shlex.split(server))
    except ValueError as error:
        raise UsageError(
            f"--server is no command line: {error}",
            cause="a quote has no end",
            action="Quote as in a shell: --server 'my-server \"two words\"'.",
        ) from error
    if not words:
        raise UsageError("--server is empty", action="Give a command, or leave it out.")
    return words
