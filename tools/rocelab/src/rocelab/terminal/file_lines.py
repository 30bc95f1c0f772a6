# SPDX-License-Identifier: GPL-2.0-or-later
"""A line for each file of a long capture: what it adds, and what costs most so far."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console

from rocelab import units
from rocelab.terminal.printable import printable


class FileLines:
    """Prints one result after the other, each of which has the packets of those before."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._before: Counter[str] = Counter()

    def show(self, result: dict[str, Any], name: str) -> None:
        """Print what file `name` has added."""
        now = Counter({
            "packets": result["input"]["packets"],
            "roce": result["roce"]["packets"],
            "findings": result["findings_total"],
        })  # fmt: skip
        added = {key: now[key] - self._before[key] for key in now}
        self._before = now
        text = (
            f"{printable(name)}: {units.plural(added['packets'], 'packet')}, {added['roce']} of "
            # what looked open at the end of a file may have been solved since
            f"RoCE, {units.plural(max(added['findings'], 0), 'new finding')}"
        )
        if result["verdict"]:
            text += f"; so far: {printable(result['verdict'][0]['what'])}"
        self._print(text)

    def tell(self, text: str) -> None:
        """Print what is skipped."""
        self._print(printable(text))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
        # a pipe's reader shall not wait for a full buffer
        self._console.file.flush()
