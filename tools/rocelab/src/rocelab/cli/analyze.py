# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze`: decode, verify and follow the packets of any RoCE capture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from rocelab.cli import analyze_against, analyze_follow, interruption, options
from rocelab.cli.analyze_output import Output, progress, write_page
from rocelab.errors import ExitCode, UsageError
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.capture import Analysis, Options


@click.command()
@click.argument(
    "captures",
    nargs=-1,
    metavar="[CAPTURE]...",
    help="pcap or pcapng, plain, gzip, zstd or lz4; - for stdin.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a line with a JSON object for each (docs/formats/analysis.md).",
)
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print the connections as CSV, a row for each direction."
)
@click.option(
    "--live",
    metavar="IFACE",
    help="Capture from this interface, until Ctrl-C; a table shows the connections.",
)
@click.option(
    "--follow",
    metavar="DIR",
    help="Analyze the files that dumpcap or tcpdump writes there (-b; -C, -G, -W) as one capture, "
    "each when it is complete, until Ctrl-C; or 'DIR/NAME*'.",
)
@click.option(
    "--merge", is_flag=True, help="Take the captures for parts of one, and merge them by time."
)
@click.option(
    "--dask",
    metavar="SCHEDULER",
    help="Let the workers of this Dask scheduler analyze the captures.",
)
@click.option(
    "--against",
    metavar="BEFORE",
    help="Compare with this capture of the same traffic: what each cause costs in both.",
)
@click.option(
    "--fail-on",
    default="",
    show_default=False,
    metavar="CAUSES",
    help="Comma-separated, such as loss,timeout, or any: exit with 1 if there is one; with "
    "--against, if it costs more than before.",
)
@click.option(
    "--html",
    type=options.PATH,
    metavar="FILE",
    help="Write a page: rates over time, connections, PSNs, latency, congestion, findings.",
)
@click.option(
    "--parquet",
    type=options.PATH,
    metavar="DIR",
    help="Write packets, messages, connections and findings as Parquet.",
)
@click.option(
    "--filter",
    "only",
    default="",
    show_default=False,
    metavar="TERMS",
    help="Comma-separated: addr=IP[/PREFIX] or addr=lid:N, time=FROM..TO (s), qpn=…, conn=…, "
    "opcode=….",
)
@click.option("--icrc/--no-icrc", default=True, help="Verify the invariant CRC.")
@click.option(
    "--l1", is_flag=True, help="Count Ethernet's preamble, FCS and gap: 24 bytes per frame."
)
@options.port
@options.profile
@click.option(
    "--max-findings",
    type=click.IntRange(min=0, max=10_000_000),
    default=1000,
    metavar="N",
    help="Findings to list; the rest are counted.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1, max=10_000_000),
    default=16384,
    metavar="N",
    help="Connections to list; the rest are counted.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=0, max=1024),
    default=0,
    metavar="N",
    help="Worker threads; 0: one per CPU of this process.",
)
def analyze(
    captures: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
    live: str | None,
    follow: str | None,
    merge: bool,
    dask: str | None,
    against: str | None,
    fail_on: str,
    html: Path | None,
    parquet: Path | None,
    only: str,
    icrc: bool,
    l1: bool,
    port: tuple[int, ...],
    profile: options.Profile,
    max_findings: int,
    max_connections: int,
    threads: int,
) -> None:
    """Decode, verify and follow the RoCE packets in captures.

    \b
    Examples:
      rocelab analyze a.pcap                    what is wrong, and what it costs
      rocelab analyze a.pcap --html page.html   the same as a page with charts
      rocelab analyze a.pcap --filter conn=3    one connection
      rocelab analyze --live eth0               what an interface sees now
      rocelab analyze --follow DIR              files that a capture writes
      rocelab analyze b.pcap --against a.pcap   what changed

    Several captures are analysed one by one, unless --merge is given. Ctrl-C ends the reading, and
    the results of what was read are printed, without tables and page.

    Exit code 0: no errors found; 1: findings of severity error, a cause of --fail-on, or a capture
    that is cut or corrupt; with --against, a cause that costs more, of --fail-on or any; 2: a
    capture cannot be used; 130: Ctrl-C before the end of a file.
    """
    from rocelab.capture import Options, parse_filter

    chosen = Options(
        ports=port,
        icrc=icrc,
        threads=threads,
        go_back_n=profile is options.Profile.gbn,
        max_findings=max_findings,
        max_connections=max_connections,
        select=parse_filter(only),
        l1=l1,
    )
    output = Output(as_json=as_json, as_csv=as_csv, fail_on=fail_on)
    if against is not None:
        others = {"--csv": as_csv, "--live": live, "--follow": follow, "--dask": dask}
        analyze_against.refuse({**others, "--parquet": parquet, "--html": html})
        compared = _check_captures([against, *captures] if captures else [], merge=merge)
        _finish(analyze_against.compare(compared, chosen, output, merge=merge))
        return
    if live is not None:
        _refuse_with_live(captures, follow=follow, parquet=parquet, html=html, dask=dask)
        _live(live, chosen, output)
        _finish(output.code)
        return
    if follow is not None:
        given = {"a capture": captures, "--merge": merge, "--dask": dask}
        analyze_follow.refuse({**given, "--parquet": parquet, "--html": html})
        analyze_follow.run(follow, chosen, output)
        _finish(output.code)
        return
    paths = _check_captures(captures, merge=merge, parquet=parquet, html=html)
    if dask is not None:
        _refuse_with_dask(paths, parquet=parquet, html=html)
        _finish(_on_cluster(dask, paths, chosen, output, merge=merge))
        return
    unusable = None
    for each in [paths] if merge else [[path] for path in paths]:
        try:
            analysis = _analyze(each, chosen, output, parquet=parquet, html=html)
        except UsageError as error:
            if len(paths) == 1 or merge:
                raise
            console.show_error(error)
            unusable = error
            continue
        if analysis.interrupted and (each[-1] != paths[-1] or "-" not in each):
            _end_interrupted(paths[paths.index(each[-1]) + 1 :])
    _finish(output.code if unusable is None else ExitCode.USAGE)


def _end_interrupted(left: list[str]) -> None:
    """Say that results are those of a part, and which captures were not read; end."""
    results = "the results above, of what was read"
    if left:
        results += f"; nothing of {', '.join(left[:3])}{' and others' if len(left) > 3 else ''}"
    console.show_interruption(
        interruption.name(),
        results,
        "give the command again; --filter time=0..10 reads a part on purpose",
    )
    raise KeyboardInterrupt


def _finish(code: ExitCode) -> None:
    if code is not ExitCode.OK:
        raise Exit(code)


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

    unusable = False
    with cluster.connect(scheduler) as client:
        for answer in cluster.results(client, captures, options, merge=merge):
            if isinstance(answer, UsageError):
                if len(captures) == 1 or merge:
                    raise answer
                console.show_error(answer)
                unusable = True
                continue
            output.add(answer)
    return ExitCode.USAGE if unusable else output.code


def _check_captures(
    captures: Sequence[str],
    *,
    merge: bool,
    parquet: Path | None = None,
    html: Path | None = None,
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
    return list(captures)


def _refuse_with_live(
    captures: Sequence[str],
    *,
    follow: str | None,
    parquet: Path | None,
    html: Path | None,
    dask: str | None,
) -> None:
    """Refuse what an interface cannot give."""
    for option, value in (("--dask", dask), ("--follow", follow)):
        if value is not None:
            raise UsageError(
                "--live analyzes an interface of this machine",
                cause=f"{option} is given, too",
                action=f"Give --live or {option}.",
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


def _live(interface: str, options: Options, output: Output) -> None:
    """Analyse what an interface sees until Ctrl-C, and print the result."""
    from rocelab.capture.live import follow
    from rocelab.terminal.live_table import LiveTable

    # standard output holds nothing but the JSON or CSV
    with LiveTable(console.out() if output.is_text else console.err()) as table:
        analysis = follow(interface, options, table.show)
    output.add(analysis.result)


def _analyze(
    paths: list[str], options: Options, output: Output, *, parquet: Path | None, html: Path | None
) -> Analysis:
    """Analyse one capture, or several as one; print the result, and write what is asked for."""
    from rocelab.capture import analyze as run

    with progress(paths) as advance:
        analysis = run(paths, options, parquet=parquet, progress=advance, first_results=True)
    # a page reads the captures once more
    if html is not None and not analysis.interrupted:
        write_page(paths, options, analysis, html)
    output.add(analysis.result)
    return analysis
