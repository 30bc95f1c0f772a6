# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab compare`: judge one run against another."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.exceptions import Exit

from rocelab.cli import options
from rocelab.errors import ExitCode
from rocelab.metrics import COMPARED
from rocelab.terminal import console
from rocelab.units import listing


@click.command()
@click.argument("first", type=options.PATH, help="A run folder.", metavar="A")
@click.argument("second", type=options.PATH, help="The run folder to judge against A.", metavar="B")
@click.option(
    "--metric",
    multiple=True,
    help="Metric to compare, by name or by a pattern such as `cpu.*`; repeatable. "
    f"By default {listing(COMPARED)}.",
    metavar="NAME",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    first: Path,
    second: Path,
    metric: tuple[str, ...],
    as_json: bool,
) -> None:
    """Judge run B against run A, cell by cell.

    A cell is one benchmark over one transport at one size. B is better, worse, or there is no
    evidence: the verdict follows from the 95 % confidence interval of the difference between the
    repetitions of both runs. An emulated run cannot be compared with one in real time. Exits with
    1 if any cell is worse.
    """
    console.say(f"reading {first} and {second}")
    from rocelab.compare.comparison import Verdict
    from rocelab.compare.comparison import compare as compare_runs
    from rocelab.terminal import comparison_tables

    comparison = compare_runs(first, second, metric or COMPARED)
    if as_json:
        console.out().print(
            json.dumps(comparison_tables.document(comparison), indent=1), markup=False
        )
    else:
        console.out().print(comparison_tables.render(comparison))
    worse = comparison.count(Verdict.WORSE)
    raise Exit(int(ExitCode.FINDINGS if worse else ExitCode.OK))
