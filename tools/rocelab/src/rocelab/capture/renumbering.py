# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of packets and messages that the core gave before it knew their connections."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl


def renumber(rows: pl.DataFrame, renumbered: Mapping[int, int]) -> pl.DataFrame:
    """Give rows the numbers of their connections (`_core.Analysis.renumbered`).

    The direction that came first is from the end a; these rows are from the end b.
    """
    if not renumbered:
        return rows
    connection = pl.col("connection")
    right = {"connection": connection.replace(renumbered)}
    if "from" in rows.columns:
        late = connection.is_in(list(renumbered))
        right["from"] = pl.when(late).then(pl.lit("b")).otherwise("from")
    return rows.with_columns(**right)
