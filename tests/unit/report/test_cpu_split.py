# SPDX-License-Identifier: GPL-2.0-or-later
"""The report's CPU split: its numbers, its caveats, and its absence without the probe."""

from __future__ import annotations

import statistics
from pathlib import Path

import polars as pl
import pytest

import report_page
from html_tree import Element
from rocelab import units
from synthetic_run import Synthetic

SIZES = (64, 4096)


def report(folder: Path, accelerator: str, *, timed: bool = True) -> Element:
    run = Synthetic(
        transports=("tcp", "rxe-v1", "rxe-v2"),
        tests=("write_bw",),
        sizes=SIZES,
        accelerator=accelerator,
        timed=timed,
    )
    return report_page.page(run.write(folder / run.run), "correlation", "cpu")


def figure(page: Element, accelerator: str) -> Element:
    [only] = page.all("div", id=f"cpu-perftest-write-bw-{accelerator}")
    return only


@pytest.mark.parametrize("accelerator", ["tcg", "native"])
def test_every_account_of_every_transport(tmp_path: Path, accelerator: str) -> None:
    """The table has each account's mean; the bars' legend has owner and context in the kernel."""
    page = report(tmp_path, accelerator)
    drawn = figure(page, accelerator)
    rows = drawn.all("table")[0].table()
    results = pl.read_parquet(next(tmp_path.glob("*/results.parquet")))
    for transport in ("tcp", "rxe-v1", "rxe-v2"):
        for node in ("n1", "n2"):
            for size in SIZES:
                here = results.filter(transport=transport, node=node, size=size, kind="per_message")
                for metric in here["metric"].unique():
                    _, context, owner = metric.split(".")
                    [row] = [
                        row
                        for row in rows
                        if (row["size"], row["owner and context"])
                        == (units.size(size), f"{owner}, {context}")
                    ]
                    mean = statistics.fmean(here.filter(metric=metric)["value"])
                    assert row[f"{transport} {node}"] == units.number(mean / 1e3, 4)
    for words in ("rxe, kernel threads", "network, system calls", "user mode"):
        assert words in drawn.text
    assert f"Accelerator: {accelerator}" in drawn.text


@pytest.mark.slow
def test_no_share_of_emulated_time(tmp_path: Path) -> None:
    """A utilization is a share of time: of real time only."""
    assert "utilization per core" in figure(report(tmp_path / "real", "native"), "native").text
    emulated = figure(report(tmp_path / "emulated", "tcg"), "tcg")
    assert "utilization" not in emulated.text
    assert "emulated" in emulated.text


@pytest.mark.slow
def test_beside_the_correlation(tmp_path: Path) -> None:
    """The table of the rest has kernel time per message, but not without the probe."""
    page = report(tmp_path / "timed", "native")
    assert "kernel CPU with start per message" in page.text
    bare = report(tmp_path / "bare", "native", timed=False)
    assert "kernel CPU with start per message" not in bare.text
    assert "CPU split" not in bare.text


@pytest.mark.parametrize("accelerator", ["native", "tcg"])
def test_perftest_s_own_utilization_stands_beside_rxecpu_s(
    tmp_path: Path, accelerator: str
) -> None:
    """With the reasons why they differ; under emulation neither is a share of time."""
    run = Synthetic(
        transports=("rxe-v2",),
        tests=("write_bw",),
        sizes=(64,),
        accelerator=accelerator,
        timed=True,
    )
    folder = run.write(tmp_path / run.run)
    table = pl.read_parquet(folder / "results.parquet")
    ours = table.filter(metric="cpu.utilization", node="n1")
    theirs = ours.with_columns(kind=pl.lit("proc_stat"), value=pl.lit(0.75))
    pl.concat([table, theirs]).write_parquet(folder / "results.parquet")
    page = report_page.page(folder, "cpu")
    rows = [
        (row["owner and context"], row["rxe-v2 n1"], row["rxe-v2 n2"])
        for row in figure(page, accelerator).all("table")[0].table()
        if "0 to 1" in row["owner and context"]
    ]
    if accelerator == "native":
        assert (
            *("utilization by perftest's --cpu_util (0 to 1, not a time)", "0.7500"),
            units.ABSENT,
        ) in rows
        assert len(rows) == 2
    else:
        assert not rows
    [section] = page.all("section", id="cpu")
    assert "charges each tick to whatever runs at that moment" in section.text
