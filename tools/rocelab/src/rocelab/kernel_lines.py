# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel lines that rocelab supports, from `tables/kernel_lines.csv`."""

from __future__ import annotations

from rocelab import shared_tables

_ROWS = shared_tables.rows("kernel_lines")
LINES = tuple(row["line"] for row in _ROWS)
"""Each has a patch series (kernel/patches/) and a node image (tools/node/lines/)."""
DEFAULT_LINE = next(row["line"] for row in _ROWS if row["default"] == "yes")
