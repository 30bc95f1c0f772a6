# SPDX-License-Identifier: GPL-2.0-or-later
"""What `rocelab analyze` shows: progress, results in one of three forms, and a page."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocelab.errors import ExitCode, UsageError
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.capture import Analysis, Options
    from rocelab.terminal.connection_csv import ConnectionCsv

_SHOWN_AFTER_S = 1.0
"""What takes less needs no progress bar."""


def _size(paths: list[str]) -> int | None:
    """Total bytes of all files; None if one of them is a stream."""
    total = 0
    for path in paths:
        if path == "-" or not Path(path).is_file():
            return None
        total += Path(path).stat().st_size
    return total


@contextlib.contextmanager
def progress(paths: list[str]) -> Iterator[Callable[[int], None] | None]:
    """Show how much is read, where that takes over a second and a person looks.

    Of a stream nobody knows the end: it shows bytes and rate only.
    """
    if not sys.stderr.isatty():
        yield None
        return
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        shown: list[Callable[[int], None]] = []

        def advance(done: int) -> None:
            if not shown and time.monotonic() - started >= _SHOWN_AFTER_S:
                shown.append(_bar(stack, _size(paths)))
            for show in shown:
                show(done)

        yield advance


def _bar(stack: contextlib.ExitStack, total: int | None) -> Callable[[int], None]:
    """Start a progress bar that ends with the stack; returns what moves it."""
    from rich import progress as rich

    rest = (rich.BarColumn(), rich.TaskProgressColumn(), rich.TimeRemainingColumn())
    bar = stack.enter_context(
        rich.Progress(
            rich.TextColumn("reading"),
            *(() if total is None else rest),
            rich.DownloadColumn(),
            rich.TransferSpeedColumn(),
            console=console.err(),
            transient=True,
        )
    )
    task = bar.add_task("reading", total=total)
    return lambda done: bar.update(task, completed=done)


class Output:
    """Prints results in one of three forms, and keeps the exit code."""

    def __init__(self, *, as_json: bool, as_csv: bool, fail_on: str = "") -> None:
        if as_json and as_csv:
            raise UsageError(
                "--json and --csv are two forms of one output",
                cause="both are given",
                action="Give one of them.",
            )
        self.as_json = as_json
        self.code = ExitCode.OK
        self.fail_on: frozenset[str] | None = None
        """Causes that are errors; None: none was named."""
        if fail_on:
            from rocelab.capture.verdict import causes

            self.fail_on = causes.chosen(fail_on)
        self._csv: ConnectionCsv | None = None
        if as_csv:
            from rocelab.terminal.connection_csv import ConnectionCsv

            self._csv = ConnectionCsv(sys.stdout)
        self._begun = False

    @property
    def is_text(self) -> bool:
        """Whether people read it."""
        return not (self.as_json or self._csv)

    def add(self, result: dict[str, Any]) -> None:
        """Print the result of one analysis."""
        self._judge(result)
        if self._csv:
            self._csv.add(result)
        elif self.as_json:
            # dump() encodes in Python, ten times slower
            sys.stdout.write(json.dumps(result) + "\n")
        else:
            # JSON and CSV need no tables for a terminal
            from rocelab.terminal import capture_tables

            if self._begun:
                console.out().print()
            capture_tables.show(result, console.out())
        self._begun = True

    def _judge(self, result: dict[str, Any]) -> None:
        from rocelab.capture.analysis import errors_in

        if errors_in(result) or result["input"]["errors"]:
            self.code = ExitCode.FINDINGS
        if self.fail_on:
            from rocelab.capture.verdict import causes

            if causes.among(causes.of(result), self.fail_on):
                self.code = ExitCode.FINDINGS


def write_page(paths: list[str], options: Options, analysis: Analysis, html: Path) -> None:
    """Read the captures of an analysis once more, and write its page."""
    from rocelab.capture import picture
    from rocelab.report import capture_page

    with progress(paths) as advance:
        drawn = picture.draw(paths, options, analysis, progress=advance)
    capture_page.write(analysis, drawn, html)
