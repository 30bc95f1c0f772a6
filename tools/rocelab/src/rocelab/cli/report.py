# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab report`: write a run's report."""

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
@click.option(
    "--export",
    "into",
    type=options.PATH,
    help="Also write results.csv, results.parquet, figures (SVG, PDF) and tables (CSV, "
    "LaTeX) here.",
    metavar="DIR",
)
@click.option(
    "--share",
    type=options.PATH,
    help="Write only a report that may be shared here: without host names, addresses, "
    "paths and keys.",
    metavar="DIR",
)
def report(
    run: Path,
    into: Path | None,
    share: Path | None,
) -> None:
    """Write a run's report again.

    Reads only the run folder, so it works on any machine and needs no nodes. Rebuilds
    results.parquet from the cells' raw output if it is missing or damaged. With --share it says
    what it masked and what it kept: read the page before you give it away.
    """
    console.say(f"reading {run}")
    from rocelab.measure import results
    from rocelab.report import build, export, share_report

    if results.repair(run):
        console.say("results.parquet was missing or damaged: made again from the cells")
    if into is not None:
        console.say(f"{len(export(run, into))} files in {into}")
    if share is not None:
        from rocelab.record.share import KEPT, MASKED

        page = share_report(run, share)
        console.say(f"masked: {', '.join(MASKED)}")
        console.say(f"kept: {'; '.join(KEPT)}")
        console.out().print(str(page), markup=False)
        return
    console.say("drawing the figures")
    console.out().print(str(build(run)), markup=False)
