# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze AFTER --against BEFORE`: two captures of the same traffic."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rocelab.cli.analyze_output import Output, progress
from rocelab.errors import ExitCode, UsageError
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.capture import Options


def refuse(others: Mapping[str, object]) -> None:
    """Refuse options, by name, that a comparison has no place for."""
    for option, value in others.items():
        if value:
            raise UsageError(
                f"--against gives a table or JSON, and {option} another thing",
                cause=f"both --against and {option} are given",
                action=f"Leave out {option}, or analyze one capture at a time.",
            )


def compare(captures: list[str], options: Options, output: Output, *, merge: bool) -> ExitCode:
    """Print what changed from the first capture to the others; return the exit code."""
    from rocelab.capture import changes
    from rocelab.capture.verdict import causes
    from rocelab.terminal import changes_table

    first, *others = captures
    if len(others) > 1 and not merge:
        raise UsageError(
            "--against compares two captures",
            cause=f"{len(others)} captures are given, not one",
            action="Give one, or --merge if they are parts of one.",
        )
    before, after = _result([first], options), _result(others, options)
    difference = changes.compare(before, after)
    failing = causes.chosen(causes.ANY) if output.fail_on is None else output.fail_on
    failed = [name for name in difference.worse if name in failing]
    if output.as_json:
        sys.stdout.write(json.dumps(changes.document(difference, before, after, failed)) + "\n")
    else:
        changes_table.show(difference, (before, after), failed, console.out())
    cut = before["input"]["errors"] or after["input"]["errors"]
    return ExitCode.FINDINGS if failed or cut else ExitCode.OK


def _result(paths: list[str], options: Options) -> dict[str, Any]:
    from rocelab.capture import analyze

    with progress(paths) as advance:
        return analyze(paths, options, progress=advance).result
