# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze`: decode, verify and follow the packets of any RoCE capture."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocelab.cli.analyze_output import Output, progress, write_page
from rocelab.cli.options import Port
from rocelab.errors import ExitCode, UsageError
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.capture import Analysis, Options


class Profile(StrEnum):
    """The rules that connections must keep."""

    default = "default"
    gbn = "gbn"


def analyze(
    captures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CAPTURE...", help="pcap or pcapng, plain, gzip, zstd or lz4; - for stdin."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print a line with a JSON object for each (docs/formats/analysis.md)."
        ),
    ] = False,
    as_csv: Annotated[
        bool,
        typer.Option("--csv", help="Print the connections as CSV, a row for each direction."),
    ] = False,
    live: Annotated[
        str | None,
        typer.Option(
            metavar="IFACE",
            help="Capture from this interface, until Ctrl-C; a table shows the connections.",
        ),
    ] = None,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Take the captures for parts of one, and merge them by time."),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEDULER",
            help="Let the workers of this Dask scheduler analyze the captures.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page: rates over time, connections, PSNs, latency, congestion, findings.",
        ),
    ] = None,
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
            help="Comma-separated: addr=IP[/PREFIX] or addr=lid:N, time=FROM..TO (s), qpn=…, "
            "conn=…, opcode=….",
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
    results of what was read are printed; of a file, nothing is.

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
    output = Output(as_json=as_json, as_csv=as_csv)
    if live is not None:
        _refuse_with_live(captures, parquet=parquet, html=html, dask=dask)
        found = _live(live, options, output)
        if found.errors:
            raise typer.Exit(ExitCode.FINDINGS)
        return
    captures = _checked(captures, merge=merge, parquet=parquet, html=html)
    if dask is not None:
        _refuse_with_dask(captures, parquet=parquet, html=html)
        _finish(_on_cluster(dask, captures, options, output, merge=merge))
        return
    unusable = None
    code = ExitCode.OK
    for paths in [captures] if merge else [[path] for path in captures]:
        try:
            found = _analyze(paths, options, output, parquet=parquet, html=html)
        except UsageError as error:
            if len(captures) == 1 or merge:
                raise
            console.show_error(error)
            unusable = error
            continue
        if found.errors or found.result["input"]["errors"]:
            code = ExitCode.FINDINGS
        if found.interrupted and paths[-1] != captures[-1]:
            raise KeyboardInterrupt
    if unusable is not None:
        code = ExitCode.USAGE
    _finish(code)


def _finish(code: ExitCode) -> None:
    if code is not ExitCode.OK:
        raise typer.Exit(code)


def _refuse_with_dask(captures: list[str], *, parquet: Path | None, html: Path | None) -> None:
    """Refuse what workers cannot give."""
    if parquet is not None or html is not None:
        raise UsageError(
            "--dask gives results, and neither tables nor a page",
            cause="--parquet or --html is given, too",
            action="Leave out --dask.",
        )
    if "-" in captures:
        raise UsageError(
            "a Dask worker cannot read this standard input",
            cause="- is given with --dask",
            action="Write it to a file that the workers can reach.",
        )


def _on_cluster(
    scheduler: str, captures: list[str], options: Options, output: Output, *, merge: bool
) -> ExitCode:
    """Print what the workers found, in the order of the captures; return the exit code."""
    from rocelab.capture import cluster
    from rocelab.capture.analysis import errors_in

    unusable = False
    code = ExitCode.OK
    with cluster.connected(scheduler) as client:
        for found in cluster.results(client, captures, options, merge=merge):
            if isinstance(found, UsageError):
                if len(captures) == 1 or merge:
                    raise found
                console.show_error(found)
                unusable = True
                continue
            output.add(found)
            if errors_in(found) or found["input"]["errors"]:
                code = ExitCode.FINDINGS
    return ExitCode.USAGE if unusable else code


def _checked(
    captures: list[str] | None, *, merge: bool, parquet: Path | None, html: Path | None
) -> list[str]:
    """Return the captures; refuse what they cannot give."""
    if not captures:
        raise UsageError(
            "there is nothing to analyze",
            cause="neither a capture nor --live is given",
            action="Name a capture, or - for standard input.",
        )
    if captures.count("-") > 1:
        raise UsageError(
            "standard input can be read only once",
            cause="- is given more than once",
            action="Give - once.",
        )
    for option, of_one in (("--parquet", parquet), ("--html", html)):
        if of_one is not None and len(captures) > 1 and not merge:
            raise UsageError(
                f"{option} writes the results of one capture",
                cause="several captures are given",
                action="Give --merge, or one capture at a time.",
            )
    if html is not None and not all(Path(path).is_file() for path in captures):
        raise UsageError(
            "--html reads a capture twice",
            cause="one of the captures is a stream, or does not exist",
            action="Write it to a file first.",
        )
    return captures


def _refuse_with_live(
    captures: list[str] | None, *, parquet: Path | None, html: Path | None, dask: str | None
) -> None:
    """Refuse what an interface cannot give."""
    if dask is not None:
        raise UsageError(
            "--live analyzes an interface of this machine",
            cause="--dask is given, too",
            action="Give --live or --dask.",
        )
    if captures:
        raise UsageError(
            "--live analyzes an interface, not captures",
            cause=f"{captures[0]} is given, too",
            action="Give --live or captures.",
        )
    if parquet is not None or html is not None:
        raise UsageError(
            "--parquet and --html need a capture",
            cause="--live keeps no packets",
            action="Capture into a file first: `dumpcap -i IFACE -w FILE`.",
        )


def _live(interface: str, options: Options, output: Output) -> Analysis:
    """Analyse what an interface sees until Ctrl-C, and print the result."""
    from rocelab.capture.live import follow
    from rocelab.terminal.live_table import LiveTable

    # standard output holds nothing but the JSON or CSV
    with LiveTable(console.out() if output.is_text else console.err()) as table:
        found = follow(interface, options, table.show)
    output.add(found.result)
    return found


def _analyze(
    paths: list[str], options: Options, output: Output, *, parquet: Path | None, html: Path | None
) -> Analysis:
    """Analyse one capture, or several as one; print the result, and write what is asked for."""
    from rocelab.capture import analyze as run

    with progress(paths) as advance:
        found = run(paths, options, parquet=parquet, progress=advance)
    if html is not None:
        write_page(paths, options, found, html)
    output.add(found.result)
    return found
