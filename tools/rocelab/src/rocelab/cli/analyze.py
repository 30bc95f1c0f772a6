# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze`: decode, verify and follow the packets of any RoCE capture."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocelab.cli.options import Port
from rocelab.errors import ExitCode, UsageError
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.capture import Analysis, Options

# below this size the work ends before a progress bar can be read
_PROGRESS_FROM_BYTES = 64 << 20


class Profile(StrEnum):
    """The rules that connections must keep."""

    default = "default"
    gbn = "gbn"


def _size(paths: list[str]) -> int:
    """Total bytes of all files; 0 if one of them is a stream."""
    total = 0
    for path in paths:
        if path == "-" or not Path(path).is_file():
            return 0
        total += Path(path).stat().st_size
    return total


@contextlib.contextmanager
def _progress(total: int) -> Iterator[object]:
    if total < _PROGRESS_FROM_BYTES or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    with Progress(
        BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=console.err(), transient=True
    ) as bar:
        task = bar.add_task("reading", total=total)
        yield lambda done: bar.update(task, completed=done)


def analyze(
    captures: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURE...", help="pcap or pcapng, plain, gzip, zstd or lz4; - for stdin."
        ),
    ],
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print a line with a JSON object for each (docs/formats/analysis.md)."
        ),
    ] = False,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Take the captures for parts of one, and merge them by time."),
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write packets, messages, connections and findings as Parquet."
        ),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="TERMS",
            help="Comma-separated: addr=…, time=FROM..TO (s), qpn=…, conn=…, opcode=….",
        ),
    ] = "",
    icrc: Annotated[
        bool, typer.Option("--icrc/--no-icrc", help="Verify the invariant CRC.")
    ] = True,
    l1: Annotated[
        bool,
        typer.Option("--l1", help="Count Ethernet's preamble, FCS and gap: 24 bytes per frame."),
    ] = False,
    port: Port = None,
    profile: Annotated[
        Profile,
        typer.Option(help="gbn: report breaches of strict Go-Back-N as errors, not notes."),
    ] = Profile.default,
    max_findings: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=10_000_000, help="Findings to list; the rest are counted."
        ),
    ] = 1000,
    max_connections: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=10_000_000, help="Connections to list; the rest are counted."
        ),
    ] = 16384,
    threads: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=1024, help="Worker threads; 0: one per CPU of this process."
        ),
    ] = 0,
) -> None:
    """Decode, verify and follow the RoCE packets in captures.

    Several captures are analysed one by one, unless --merge is given. SIGINT ends a stream, and the
    results of what was read are printed.

    Exit code 0: no errors found; 1: findings of severity error, or a capture that is cut or
    corrupt; 2: a capture cannot be used.
    """
    from rocelab.capture import Options, parse_filter

    options = Options(
        ports=port or [],
        icrc=icrc,
        threads=threads,
        go_back_n=profile is Profile.gbn,
        max_findings=max_findings,
        max_connections=max_connections,
        select=parse_filter(only),
        l1=l1,
    )
    if captures.count("-") > 1:
        raise UsageError(
            "standard input can be read only once",
            cause="- is given more than once",
            action="Give - once.",
        )
    if parquet is not None and len(captures) > 1 and not merge:
        raise UsageError(
            "--parquet writes the tables of one capture",
            cause="several captures are given",
            action="Give --merge, or one capture at a time.",
        )
    unusable = None
    code = ExitCode.OK
    for place, paths in enumerate([captures] if merge else [[path] for path in captures]):
        if place and not as_json:
            console.out().print()
        try:
            found = _analyze(paths, options, parquet, as_json=as_json)
        except UsageError as error:
            if len(captures) == 1 or merge:
                raise
            console.show_error(error)
            unusable = error
            continue
        if found.errors or found.result["input"]["errors"]:
            code = ExitCode.FINDINGS
        if found.interrupted:
            break
    if unusable is not None:
        code = ExitCode.USAGE
    if code is not ExitCode.OK:
        raise typer.Exit(code)


def _analyze(
    paths: list[str], options: Options, parquet: Path | None, *, as_json: bool
) -> Analysis:
    """Analyse one capture, or several as one, and print the result."""
    from rocelab.capture import analyze as run
    from rocelab.terminal import capture_tables

    with _progress(_size(paths)) as progress:
        found = run(
            paths,
            options,
            parquet=parquet,
            progress=progress if callable(progress) else None,
        )
    if as_json:
        json.dump(found.result, sys.stdout, ensure_ascii=True)
        sys.stdout.write("\n")
    else:
        capture_tables.show(found.result, console.out())
    return found
