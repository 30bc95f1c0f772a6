# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab join`: what a capture between nodes saw, matched to what their drivers recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rocelab.cli import console
from rocelab.cli.options import Port
from rocelab.errors import ExitCode


def join(
    where: Annotated[
        Path,
        typer.Argument(
            metavar="WHERE", help="A run folder, a cell of it, or a capture between nodes."
        ),
    ],
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="NODE.pcapng", help="A node's trace by rxedump, for a capture; repeatable."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (docs/formats/join.md).")
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write packets and messages as Parquet."),
    ] = None,
    one_clock: Annotated[
        bool,
        typer.Option("--one-clock", help="All files were written on one machine (known for runs)."),
    ] = False,
    port: Port = None,
    window: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=1 << 30, help="Packets held in memory; 0: 131072."),
    ] = 0,
) -> None:
    """Match every frame to its sender's and its receiver's driver record.

    Prints the share that is matched, and why the rest is not: lost before or behind the capture,
    copied, dropped by a driver, a record that rxedump lost, or not to be decided.

    Exit code 0: all is matched or explained; 1: something is not; 2: nothing to join.
    """
    from rocelab import correlate
    from rocelab.correlate import output, view
    from rocelab.correlate.joined import SCHEMA

    places = correlate.find(where, trace or (), one_clock=one_clock)
    found = []
    for number, place in enumerate(places, 1):
        if len(places) > 1 and sys.stderr.isatty():
            console.err.print(f"\r\x1b[Kjoining {number}/{len(places)}", end="\r", markup=False)
        found.append(output.examine(place, parquet, ports=port or (), window=window))
    if len(places) > 1 and sys.stderr.isatty():
        console.err.print("\r\x1b[K", end="")
    if as_json:
        json.dump({"schema": SCHEMA, "places": [view.as_dict(one) for one in found]}, sys.stdout)
        sys.stdout.write("\n")
    else:
        view.show(found, console.out)
        output.show_fits(where, console.out)
    if any(one.joined.unexplained for one in found):
        raise typer.Exit(ExitCode.FINDINGS)
