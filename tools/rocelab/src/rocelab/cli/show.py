# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab show`: a finished run's numbers on the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from rocelab.cli import options
from rocelab.terminal import console


@click.command()
@click.argument(
    "run",
    type=options.PATH,
    help="A run folder, such as `runs/20261121T031500Z-demo`.",
    metavar="RUN",
)
@options.as_json
def show(
    run: Path,
    as_json: bool,
) -> None:
    """Print a run's tables again, as `rocelab run` does when it ends.

    Reads only the run folder. Tables take the width of the terminal, and 80 columns where there is
    none. With --json it prints every result with its repetitions, median, mean and 95 % confidence
    interval (docs/formats/json.md).
    """
    console.say(f"reading {run}")
    from rocelab.measure import results

    if results.repair(run):
        console.say("results.parquet was missing or damaged: made again from the cells")
    if as_json:
        from rocelab.record import summary

        console.print_json(summary.of(run))
        return
    from rocelab.terminal import run_tables

    run_tables.show(run, console.out())
