# SPDX-License-Identifier: GPL-2.0-or-later
"""The report shows a typical packet where instructions are counted, and says how many are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import report_page
from html_tree import Element
from rocelab import units
from synthetic_run import ATYPICAL, Synthetic

RUN = Synthetic(
    accelerator="icount",
    transports=("rxe-v2",),
    tests=("write_lat",),
    sizes=(64, 4096),
    repetitions=2,
    typical=True,
)
FIGURE = "stages-perftest-write-lat-packets-icount"


@pytest.fixture(scope="module")
def page(folder: Path) -> Element:
    return report_page.page(folder)


def mean(results: pl.DataFrame, metric: str, node: str = "n1") -> float:
    """Over the repetitions, of a WRITE of 64 bytes."""
    means = results.filter(metric=metric, node=node, kind="RDMA_WRITE", size=64)["value"]
    return sum(means) / len(means)


def test_its_stages(page: Element, results: pl.DataFrame) -> None:
    [figure] = page.all("div", id=FIGURE)
    assert "Cost of a typical packet, mean over 2 repetitions." in figure.text
    assert "Typical is the mean of the middle half of the packets" in figure.text
    sent = figure.all("table")[0]
    assert "A packet sent, typical instructions" in sent.text
    [row] = [
        row for row in sent.table() if row["size"] == units.size(64) and "n1" in row["packets"]
    ]
    assert row["icrc"] == units.number(mean(results, "stage.tx.icrc.typical"), 4)
    assert row["encapsulation"] == units.number(mean(results, "encapsulation.typical"), 4)
    received = figure.all("table")[1].table()
    [row] = [row for row in received if row["size"] == units.size(64) and "n2" in row["packets"]]
    # a wait has no typical packet
    assert row["queue (mean, emulated ns)"] == units.number(
        mean(results, "stage.rx.queue.mean", "n2"), 4
    )


def test_packets_that_are_not(page: Element, results: pl.DataFrame) -> None:
    """Count and share, with the mean that has them."""
    [figure] = page.all("div", id=FIGURE)
    atypical = figure.all("table")[2]
    assert "Stages with packets that differ from the typical one by over an eighth" in atypical.text
    rows = {
        (row["packets"], row["size"], row["stage"]): row
        for row in atypical.table()
        if row["transport"] == "rxe-v2"
    }
    row = rows["n1 sends RDMA WRITE", units.size(64), "icrc"]
    assert row["typical"] == units.number(mean(results, "stage.tx.icrc.typical"), 4)
    assert row["mean"] == units.number(mean(results, "stage.tx.icrc.mean"), 4)
    assert row["passed"] == units.integer(2000)
    assert (row["not typical"], row["share"]) == (f"{2 * ATYPICAL}", f"{ATYPICAL / 1000:.1%}")
    assert not any(stage in ("queue", "reply") for *_, stage in rows)
    said = [mark for mark in figure.all("title") if "icrc" in mark.text]
    assert any(f", {2 * ATYPICAL} of them not typical" in mark.text for mark in said)


def test_the_first_screen_says_so(page: Element) -> None:
    [answer] = page.all("section", id="answer")
    text = answer.text
    assert "The driver's work on a typical packet of " in text
    assert "A typical RDMA WRITE packet of that message: from left to right" in text
    assert "Stages of a typical RDMA WRITE packet together, in instructions" in text


def test_costs_of_a_message(page: Element, results: pl.DataFrame) -> None:
    """Weighted over all kinds of packets."""
    [section] = page.all("section", id="costs")
    [row] = [row for row in section.all("table")[0].table() if row["size"] == units.size(64)]
    here = results.filter(metric="encapsulation.typical", size=64)
    medians = here.group_by("node", "kind").agg(pl.col("value").median())["value"]
    assert row["typical encapsulation per packet"] == units.number(sum(medians) / len(medians))


@pytest.mark.parametrize("change", [{"typical": False}, {"accelerator": "kvm"}])
def test_otherwise_a_mean(tmp_path: Path, change: dict[str, object]) -> None:
    """Of older runs, and in real time."""
    run = replace(RUN, **change)  # type: ignore[arg-type]
    page = report_page.page(run.write(tmp_path / run.run), "stages", "answer", "costs", "findings")
    text = page.text
    assert "ypical" not in text
    assert "Mean cost of a packet, mean over 2 repetitions." in text
    assert "The mean RDMA WRITE packet of that message" in text
    assert "mean encapsulation per packet" in text
