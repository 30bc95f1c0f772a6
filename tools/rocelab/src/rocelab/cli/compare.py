# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rocelab.cli import console
from rocelab.errors import ExitCode


def compare(
    first: Annotated[Path, typer.Argument(help="A run's folder.", metavar="A")],
    second: Annotated[Path, typer.Argument(help="The run to judge against it.", metavar="B")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of latency.mean, bandwidth and application.*; a name or a pattern as "
            "`cpu.*`; "
            "repeatable.",
            metavar="NAME",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Compare two runs, cell by cell: is B better than A, worse, or is there no evidence?

    A cell is one benchmark over one transport at one size; the answer is by the 95 % confidence
    interval of the difference between the repetitions of both runs. Runs under emulation and
    runs in real time do not compare. Exits with 1 when a cell is worse.
    """
    from rocelab.compare import view
    from rocelab.compare.comparison import METRICS, Verdict
    from rocelab.compare.comparison import compare as compared

    found = compared(first, second, metric or METRICS)
    if as_json:
        console.out.print(json.dumps(view.document(found), indent=1), markup=False)
    else:
        console.out.print(view.render(found))
    worse = found.count(Verdict.WORSE)
    raise typer.Exit(int(ExitCode.FINDINGS if worse else ExitCode.OK))
