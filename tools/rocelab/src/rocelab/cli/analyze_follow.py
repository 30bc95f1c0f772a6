# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze --follow DIR`: the files of a long capture, while it is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rocelab.cli.analyze_output import Output
from rocelab.errors import UsageError
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.capture import Options


def refuse(others: Mapping[str, object]) -> None:
    """Refuse options and arguments, by name, that files without an end cannot serve."""
    for other, value in others.items():
        if value:
            raise UsageError(
                f"--follow takes no {other.removeprefix('a ')}",
                cause=f"{other} is given, too",
                action="Leave it out, or analyze the files with --merge when they are complete.",
            )


def run(where: str, options: Options, output: Output) -> None:
    """Print what each file adds, and the results at the end; JSON after each file."""
    from rocelab.capture.follow import follow
    from rocelab.terminal.file_lines import FileLines

    lines = FileLines(console.out() if output.is_text else console.err())

    def show(result: dict[str, Any], name: str) -> None:
        lines.show(result, name)
        if output.as_json:
            output.add(result)
            sys.stdout.flush()

    analysis = follow(where, options, show, lines.tell)
    output.add(analysis.result)
