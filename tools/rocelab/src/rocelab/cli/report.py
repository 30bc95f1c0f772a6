# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocelab.cli import console


def report(
    run: Annotated[
        Path, typer.Argument(help="A run's folder, as `runs/20261121T031500Z-demo`.", metavar="RUN")
    ],
    into: Annotated[
        Path | None,
        typer.Option(
            "--export",
            help="Also write results.csv, results.parquet and each figure as SVG and PDF there.",
            metavar="DIR",
        ),
    ] = None,
) -> None:
    """Write the report of a run anew.

    Reads nothing but the folder: works on any machine, long after the nodes are gone.
    """
    from rocelab.report import build, export

    if into is not None:
        console.say(f"{len(export(run, into))} files in {into}")
    console.out.print(str(build(run)), markup=False)
