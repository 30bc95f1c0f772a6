# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables that several languages share (tables/ at the top of the checkout)."""

from __future__ import annotations

import csv
from pathlib import Path


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of `tables/NAME.csv`, each by its column names; comments are left out."""
    text = (Path(__file__).parent / "tables" / f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
