# SPDX-License-Identifier: GPL-2.0-or-later
"""An analysed capture for Python programs and notebooks: what `rocelab.open` returns."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocelab import capture
from rocelab.capture import Analysis, Options

if TYPE_CHECKING:
    import polars as pl

_WIDTH = 110
"""Columns of the text."""


class Capture:
    """The results of `rocelab analyze`, as text, as an object, as tables and as a page.

    Tables are polars frames; docs/formats/analysis.md lists their columns. Times are ns since
    1970, sizes are bytes. `print(found)` prints what the command prints.
    """

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self._paths = paths
        self._options = options
        self._analysis = capture.analyze(paths, options)

    @property
    def result(self) -> dict[str, Any]:
        """The object of `--json`."""
        return self._analysis.result

    @property
    def errors(self) -> int:
        """Number of findings of severity error; the command then exits with 1."""
        return self._analysis.errors

    @cached_property
    def connections(self) -> pl.DataFrame:
        """One row per connection and direction, with the columns of `--csv`."""
        import polars as pl

        from rocelab.capture import connection_rows

        rows = list(connection_rows.rows(self.result))
        schema = {
            name: pl.String if name in connection_rows.TEXTS else pl.Int64
            for name in connection_rows.COLUMNS
        }
        return pl.DataFrame(rows, schema=schema)

    @cached_property
    def findings(self) -> pl.DataFrame:
        """One row per finding; `file` is its index in the order given."""
        import polars as pl

        return pl.DataFrame(self._analysis.findings)

    @property
    def packets(self) -> pl.DataFrame:
        """One row per RoCE packet, about 300 bytes each. Reads the captures once more."""
        import polars as pl

        return pl.DataFrame(self._rows.packets)

    @property
    def messages(self) -> pl.DataFrame:
        """One row per complete message. Reads the captures once more."""
        import polars as pl

        return pl.DataFrame(self._rows.messages)

    @cached_property
    def _rows(self) -> Analysis:
        return capture.read(*self._paths, options=self._options)

    def __str__(self) -> str:
        from rich.console import Console

        from rocelab.terminal import capture_tables

        text = io.StringIO()
        capture_tables.show(self.result, Console(file=text, width=_WIDTH, highlight=False))
        return text.getvalue()

    def __repr__(self) -> str:
        return f"<rocelab capture {', '.join(self._paths)}>"

    def html(self, into: str | os.PathLike[str]) -> None:
        """Write the page of `--html`.

        Raises UsageError or MissingError if the file cannot be written.
        """
        from rocelab.capture import picture
        from rocelab.report import capture_page

        drawn = picture.draw(self._paths, self._options, self._analysis)
        capture_page.write(self._analysis, drawn, Path(into))


def run_analysis(
    captures: Sequence[str | os.PathLike[str]],
    *,
    only: str,
    ports: Sequence[int],
    icrc: bool,
    go_back_n: bool,
    max_findings: int,
    max_connections: int,
) -> Capture:
    """Analyse captures; the arguments are those of `rocelab.open`."""
    options = Options(
        ports=ports,
        icrc=icrc,
        go_back_n=go_back_n,
        max_findings=max_findings,
        max_connections=max_connections,
        select=capture.parse_filter(only),
    )
    return Capture([os.fspath(path) for path in captures], options)
