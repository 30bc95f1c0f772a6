# SPDX-License-Identifier: GPL-2.0-or-later
"""The fits of a run as `rocelab join` prints them."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
from rich.console import Console

from rocelab.terminal import fit_tables
from synthetic_run import Synthetic


def printed(run: Path) -> str:
    text = io.StringIO()
    fit_tables.show(run, Console(file=text, width=120))
    return text.getvalue()


def test_what_all_sizes_of_an_mpirun_share_belongs_to_no_size(tmp_path: Path) -> None:
    """One mpirun of many sizes has packets and stages of all of them together, without a size."""
    run = Synthetic(tests=("write_lat",), repetitions=1).write(tmp_path)
    alone = printed(run)
    assert "write_lat rxe-v2" in alone
    path = run / "results.parquet"
    rows = pl.read_parquet(path)
    together = rows.with_columns(
        pl.lit(None, pl.UInt64).alias("size"),
        pl.lit("mpibench").alias("tool"),
        pl.lit("latency").alias("test"),
    )
    pl.concat([rows, together]).write_parquet(path)
    assert printed(run) == alone
