# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab join`: match a capture between nodes to their drivers' records."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rocelab.cli.options import JoinTraces, JoinWhere, OneClock, Port
from rocelab.errors import ExitCode
from rocelab.terminal import console


def join(
    where: JoinWhere,
    trace: JoinTraces = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (docs/formats/join.md).")
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write packets and messages as Parquet."),
    ] = None,
    one_clock: OneClock = False,
    port: Port = None,
    window: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=1 << 30, help="Packets to hold in memory; 0: 131072."),
    ] = 0,
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

    places = correlate.find(where, trace or (), one_clock=one_clock)
    found = []
    for number, place in enumerate(places, 1):
        if len(places) > 1 and sys.stderr.isatty():
            console.err().print(f"\r\x1b[Kjoining {number}/{len(places)}", end="\r", markup=False)
        found.append(join_output.examine(place, parquet, ports=port or (), window=window))
    if len(places) > 1 and sys.stderr.isatty():
        console.err().print("\r\x1b[K", end="")
    if as_json:
        rows = [join_tables.as_dict(one) for one in found]
        sys.stdout.write(json.dumps({"schema": SCHEMA, "places": rows}) + "\n")
    else:
        join_tables.show(found, console.out())
        join_output.show_fits(where, console.out())
    if any(one.joined.unexplained or one.joined.sums["errors"] for one in found):
        raise typer.Exit(ExitCode.FINDINGS)
