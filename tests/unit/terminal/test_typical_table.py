# SPDX-License-Identifier: GPL-2.0-or-later
"""Stages in the terminal: of a typical packet where instructions are counted, and what it omits."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from rocelab.terminal import run_tables
from synthetic_run import ATYPICAL, Synthetic

RUN = Synthetic(
    accelerator="icount", tests=("write_lat",), sizes=(64, 4096), repetitions=2, typical=True
)


def shown(run: Path, width: int = 80) -> str:
    """The tables of a run."""
    screen = io.StringIO()
    run_tables.show(run, Console(width=width, file=screen))
    return screen.getvalue()


def stage(text: str, name: str) -> list[float]:
    """A row of the table of stages."""
    [row] = re.findall(rf"^{re.escape(name)}(?: \(.*\))? +([\d,]+) +([\d,]+)$", text, re.MULTILINE)
    return [float(cell.replace(",", "")) for cell in row]


@pytest.mark.parametrize("width", [60, 80])
def test_a_typical_packet_and_what_it_leaves_out(tmp_path: Path, width: int) -> None:
    run = RUN.write(tmp_path)
    text = shown(run, width)
    table = pl.read_parquet(run / "results.parquet").filter(node="n1", kind="RDMA_WRITE")

    def mean(metric: str) -> list[float]:
        here = table.filter(metric=metric).group_by("size").agg(pl.col("value").mean())
        return [float(round(value)) for value in here.sort("size")["value"]]

    assert max(map(len, text.splitlines())) <= width
    assert "typical instructions per RDMA_WRITE packet, mean over repetitions" in " ".join(
        text.split()
    )
    assert stage(text, "tx icrc") == mean("stage.tx.icrc.typical")
    assert stage(text, "encapsulation") == mean("encapsulation.typical")
    # waits have no typical packet
    assert stage(text, "rx queue") == mean("stage.rx.queue.mean")
    assert "rx queue (mean, emulated ns)" in text
    closing = " ".join(text.split())
    assert (
        "the middle half of the packets. Over an eighth away from it are, at all sizes: tx wqe"
        in closing
    )
    packets = 2 * 2 * 1000
    assert f"tx icrc {4 * ATYPICAL} of {packets:,} ({4 * ATYPICAL / packets:.1%})" in closing
    assert f"rx cqe {4 * ATYPICAL} of 1,000 (2.8%)" in closing
    assert "rx queue 28" not in closing


@pytest.mark.parametrize(
    ("change", "unit"),
    [({"typical": False}, "instructions"), ({"accelerator": "kvm"}, "ns")],
)
def test_otherwise_a_mean(tmp_path: Path, change: dict[str, object], unit: str) -> None:
    """Of older runs, and in real time."""
    text = shown(replace(RUN, **change).write(tmp_path))  # type: ignore[arg-type]
    assert f"mean {unit} per RDMA_WRITE packet, over all repetitions" in text
    assert "ypical" not in text
