# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables that several languages share (tables/ at the top of the checkout)."""

from __future__ import annotations

import csv
import pkgutil


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of `tables/NAME.csv`, each by its column names; comments are left out."""
    # lighter than importlib.resources, and reads from a zip file too
    data = pkgutil.get_data("rocelab", f"tables/{name}.csv")
    assert data is not None
    text = data.decode()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
