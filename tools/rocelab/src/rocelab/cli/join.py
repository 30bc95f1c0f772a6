# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab join`: match a capture between nodes to their drivers' records."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from click.exceptions import Exit

from rocelab.cli import options
from rocelab.errors import ExitCode
from rocelab.terminal import console


@click.command()
@options.join_where
@options.join_traces
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object (docs/formats/join.md)."
)
@click.option(
    "--parquet", type=options.PATH, metavar="DIR", help="Write packets and messages as Parquet."
)
@options.one_clock
@options.port
@click.option(
    "--window",
    type=click.IntRange(min=0, max=1 << 30),
    default=0,
    metavar="N",
    help="Packets to hold in memory; 0: 131072.",
)
def join(
    where: Path,
    trace: tuple[Path, ...],
    as_json: bool,
    parquet: Path | None,
    one_clock: bool,
    port: tuple[int, ...],
    window: int,
) -> None:
    """Match each frame to its sender's and receiver's driver records.

    Prints the share of frames matched, and why the others are not: lost before or after the
    capture point, duplicated, dropped by a driver, record lost by rxedump, or ambiguous.

    Exit code 0: every frame is matched or explained; 1: some are not, or a file ends early; 2:
    nothing to join.
    """
    console.say(f"reading {where}")
    from rocelab import correlate
    from rocelab.correlate.joined import SCHEMA
    from rocelab.terminal import join_output, join_tables

    places = correlate.find(where, trace, one_clock=one_clock)
    captures = []
    for number, place in enumerate(places, 1):
        if len(places) > 1 and sys.stderr.isatty():
            console.err().print(f"\r\x1b[Kjoining {number}/{len(places)}", end="\r", markup=False)
        captures.append(join_output.examine(place, parquet, ports=port, window=window))
    if len(places) > 1 and sys.stderr.isatty():
        console.err().print("\r\x1b[K", end="")
    if as_json:
        rows = [join_tables.as_dict(one) for one in captures]
        sys.stdout.write(json.dumps({"schema": SCHEMA, "places": rows}) + "\n")
    else:
        join_tables.show(captures, console.out())
        join_output.show_fits(where, console.out())
    if any(one.joined.unexplained or one.joined.sums["errors"] for one in captures):
        raise Exit(ExitCode.FINDINGS)
