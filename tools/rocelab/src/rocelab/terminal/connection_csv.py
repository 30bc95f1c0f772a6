# SPDX-License-Identifier: GPL-2.0-or-later
"""The connections of captures as CSV (RFC 4180, with line ends of Unix)."""

from __future__ import annotations

import csv
from typing import Any, TextIO

from rocelab.capture import connection_rows
from rocelab.terminal.printable import printable

_FORMULA = ("=", "+", "-", "@")
"""What makes a spreadsheet compute a cell; only names of files can begin so."""


class ConnectionCsv:
    """Writes one table for several captures; its head comes with the first."""

    def __init__(self, output: TextIO) -> None:
        self._writer = csv.DictWriter(output, connection_rows.COLUMNS, lineterminator="\n")
        self._begun = False

    def add(self, result: dict[str, Any]) -> None:
        """Write the connections of a capture; `result` is what `--json` prints."""
        if not self._begun:
            self._writer.writeheader()
            self._begun = True
        for row in connection_rows.rows(result):
            self._writer.writerow(row | {"file": _name(str(row["file"]))})


def _name(text: str) -> str:
    """A file's name without control characters, which no spreadsheet takes for a formula."""
    return f"./{printable(text)}" if text.startswith(_FORMULA) else printable(text)
