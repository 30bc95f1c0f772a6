# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables at the top of the checkout, read without the code under test."""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def rows(name: str) -> list[dict[str, str]]:
    """The rows of `tables/NAME.csv` by column, comments left out."""
    lines = (ROOT / "tables" / f"{name}.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
