# SPDX-License-Identifier: GPL-2.0-or-later
"""A run on nodes that count instructions leads with what a message costs, by owner."""

from __future__ import annotations

import io
import re
from pathlib import Path

import polars as pl
from rich.console import Console

from rocelab.terminal import run_tables
from synthetic_run import Synthetic


def shown(run: Path) -> str:
    """The tables of a run in 80 columns."""
    screen = io.StringIO()
    run_tables.show(run, Console(width=80, file=screen))
    return screen.getvalue()


def test_instructions_by_owner_come_first(tmp_path: Path) -> None:
    run = Synthetic(accelerator="icount", tests=("write_lat",), sizes=(64,), timed=True).write(
        tmp_path
    )
    text = shown(run)
    assert text.index("Instructions per message") < text.index("Latency, emulated µs")
    [row] = re.findall(r"^perftest write_lat 64 B +tcp +(.+)$", text, re.MULTILINE)
    table = pl.read_parquet(run / "results.parquet").filter(
        pl.col("kind") == "per_message",
        pl.col("transport") == "tcp",
        pl.col("metric").str.starts_with("cpu.") & pl.col("metric").str.ends_with(".network"),
        ~pl.col("metric").str.contains(r"softirq\..+\."),
    )
    network = table.group_by("metric", "node").agg(pl.col("value").mean())["value"].sum()
    calls, stack, rxe, in_kernel, _ = (
        float(cell.replace(",", "")) for cell in re.split(r" {2,}", row.strip())
    )
    assert stack == round(network)
    assert abs(calls + stack + rxe - in_kernel) <= 2
    assert "mean instructions per RDMA_WRITE packet" in text
    assert "…" not in text


def test_real_time_has_no_such_table(tmp_path: Path) -> None:
    run = Synthetic(accelerator="kvm", tests=("write_lat",), sizes=(64,), timed=True).write(
        tmp_path
    )
    assert "nstructions" not in shown(run)
