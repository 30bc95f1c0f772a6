# SPDX-License-Identifier: GPL-2.0-or-later
"""The report's pages on single packets and on correlation, recomputed from results.parquet."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import polars as pl
import pytest

import html_tree
import report_page
from html_tree import Element
from rocelab import stage_table, units
from rocelab.record import read
from rocelab.report import build, correlation_figures, life_figures, stage_figures
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

RUN = Synthetic(
    transports=("tcp", "rxe-v2"), tests=("write_lat", "write_bw"), sizes=(64, 1024, 4096),
    repetitions=6,
)  # fmt: skip


@pytest.fixture(scope="module")
def page(folder: Path) -> Element:
    return report_page.page(folder, "life", "correlation")


def figure(page: Element, slug: str) -> Element:
    [only] = page.all("div", id=slug)
    return only


def section(page: Element, anchor: str) -> Element:
    [only] = page.all("section", id=anchor)
    return only


def number(text: str) -> float:
    return float(text.replace(units.NARROW_SPACE, "").replace(units.MINUS, "-"))


def test_the_life_is_one_real_message(page: Element, results: pl.DataFrame) -> None:
    """All parts of a size come from one repetition, the one with the middle total."""
    rows = figure(page, "life-perftest-write-lat-rxe-v2-tcg").all("table")[0].table()
    here = results.filter(pl.col("test") == "write_lat", pl.col("transport") == "rxe-v2")
    for size in RUN.sizes:
        lived = here.filter(pl.col("size") == size)
        totals = lived.filter(metric="life.span.requester").sort("value")
        repetition = totals["repetition"][(len(totals) - 1) // 2]
        lived = lived.filter(pl.col("repetition") == repetition)
        shown = {row["part"]: row for row in rows if row["size"] == units.size(size)}
        for stage in stage_table.TX:
            expected = lived.filter(metric=f"life.tx.{stage}")["value"].item() / 1e3
            row = shown[f"request, sending: {stage}"]
            assert number(row["emulated µs"]) == pytest.approx(expected, rel=1e-3)
            assert row["clock"] == "the requester's"
        whole = shown["from the first stage to the end of the answer"]["emulated µs"]
        expected = lived.filter(metric="life.span.requester")["value"].item() / 1e3
        assert number(whole) == pytest.approx(expected, rel=1e-3)


def test_the_rest_goes_up_to_the_measured_latency(page: Element, results: pl.DataFrame) -> None:
    rows = figure(page, "life-perftest-write-lat-rxe-v2-tcg").all("table")[0].table()
    here = results.filter(test="write_lat", transport="rxe-v2", metric="latency.mean")
    for size in RUN.sizes:
        shown = {r["part"]: r["emulated µs"] for r in rows if r["size"] == units.size(size)}
        measured = number(shown["measured, mean, one way, as half of a round trip"])
        assert any(
            value / 1e3 == pytest.approx(measured, rel=1e-3)
            for value in here.filter(pl.col("size") == size)["value"]
        )
        rest = number(shown["the rest, up to the measured latency"])
        assert rest == pytest.approx(measured - 21.0, abs=0.1)
    bandwidth = figure(page, "life-perftest-write-bw-rxe-v2-tcg").all("table")[0].text
    assert "measured" not in bandwidth


def test_the_life_says_what_clocks_cannot(page: Element) -> None:
    caption = figure(page, "life-perftest-write-lat-rxe-v2-tcg").all("figcaption")[0].text
    assert "unknown" in caption
    assert "Accelerator: tcg" in caption
    assert "rdma_rxe rocelab-0123456789ab" in caption
    panels = figure(page, "life-perftest-write-lat-rxe-v2-tcg").all("div", class_="panel")
    assert len(panels) == len(RUN.sizes) + 1


def test_shares_of_frames(page: Element) -> None:
    rows = section(page, "life").all("table")[-1].table()
    assert [row["benchmark"] for row in rows] == ["perftest write_lat", "perftest write_bw"]
    for row in rows:
        assert row["frames"] == units.integer(1998 * len(RUN.sizes) * RUN.repetitions)
        assert row["sender"] == row["receiver"] == "100.00%"
        assert row["without, and why"] == f"{2 * len(RUN.sizes) * RUN.repetitions} before device"
        assert row["unexplained"] == "0"


def stages_per_message(here: pl.DataFrame, size: int, *, waits: bool) -> float:
    """Stage sums of everything but acknowledgements, by the messages on the wire."""
    left_out = ["stage.rx.reply.sum"] + ([] if waits else ["stage.rx.queue.sum"])
    sums = here.filter(
        pl.col("metric").str.contains(r"^stage\..*\.sum$"),
        ~pl.col("metric").is_in(left_out),
        pl.col("kind") != "ACKNOWLEDGE",
    )
    messages = here.filter(metric="wire.payload_bytes")["value"].sum() / size
    return float(sums["value"].sum() / messages)


@pytest.mark.parametrize(
    ("test", "slug"),
    [
        ("write_lat", "correlation-latency-one-way-half-rtt-tcg"),
        ("write_bw", "correlation-inverse-bandwidth-one-way-tcg"),
    ],
)
def test_fit_and_rest(page: Element, results: pl.DataFrame, test: str, slug: str) -> None:
    here = results.filter(pl.col("test") == test, pl.col("transport") == "rxe-v2")
    points = []
    for (size, _), step in here.group_by("size", "repetition"):
        assert isinstance(size, int)
        if test == "write_lat":
            measured = step.filter(metric="latency.mean")["value"].item()
        else:
            measured = 1e9 / step.filter(metric="message_rate")["value"].item()
        stages = stages_per_message(step, size, waits=test == "write_lat")
        points.append((size, stages, measured))
    times, lines = (table.table() for table in figure(page, slug).all("table"))
    ours = [row for row in times if row["transport"] == "rxe-v2"]
    assert len(ours) == len(RUN.sizes)
    for row in ours:
        some = [p for p in points if units.size(p[0]) == row["size"]]
        rest = statistics.fmean([measured - stages for _, stages, measured in some]) / 1e3
        assert number(row["rest"]) == pytest.approx(rest, rel=2e-3)
    # weighted by 1 / measured²: the normal equations, not the code's sums
    weights = [measured**-2 for _, _, measured in points]
    sizes, rests = [float(p[0]) for p in points], [p[2] - p[1] for p in points]
    s = [sum(w * x**k for w, x in zip(weights, sizes, strict=True)) for k in range(3)]
    t = [sum(w * y * x**k for w, x, y in zip(weights, sizes, rests, strict=True)) for k in range(2)]
    slope = (s[0] * t[1] - s[1] * t[0]) / (s[0] * s[2] - s[1] ** 2)
    [line] = [r for r in lines if (r["transport"], r["amount"]) == ("rxe-v2", "bytes")]
    assert number(line["factor"]) == pytest.approx(slope, rel=2e-3, abs=5e-4)
    assert number(line["base"]) == pytest.approx((t[0] - slope * s[1]) / s[0] / 1e3, rel=2e-3)
    assert line["points"] == str(len(points))
    assert " to " in figure(page, slug).all("table")[0].text
    assert "explained" not in figure(page, slug).text, "no share of time under emulation"


def test_shares_only_where_time_is_time(tmp_path: Path) -> None:
    folder = Synthetic(accelerator="native", tests=("write_lat",), repetitions=2).write(tmp_path)
    page = report_page.page(folder, "correlation")
    rows = figure(page, "correlation-latency-one-way-half-rtt-native").all("table")[0].table()
    assert all(row["explained"].endswith("%") for row in rows if row["transport"] != "tcp")
    assert {row["explained"] for row in rows if row["transport"] == "tcp"} == {units.ABSENT}
    caption = figure(page, "correlation-latency-one-way-half-rtt-native").all("figcaption")[0].text
    assert "No intervals: they need at least 6 repetitions" in caption


def test_without_rxedump_the_page_says_what_is_missing(tmp_path: Path) -> None:
    folder = Synthetic(traced=False, tests=("write_lat",), repetitions=1).write(tmp_path)
    page = report_page.page(folder, "life")
    lives = section(page, "life")
    assert "rxedump" in lives.text
    assert not lives.all("figure")
    folder = Synthetic(transports=("tcp",), tests=("write_lat",)).write(tmp_path / "tcp")
    path = folder / "results.parquet"
    rows = pl.read_parquet(path)
    rows.filter(~pl.col("metric").str.starts_with("wire.")).write_parquet(path)
    page = report_page.page(folder, "correlation")
    assert "nothing to correlate" in section(page, "correlation").text


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e300, -1e300, 0.0, -1.0, 5e-324])
@pytest.mark.parametrize(
    "metric",
    ["latency.mean", "message_rate", "stage.tx.icrc.sum", "wire.payload_bytes",
     "life.span.requester", "life.tx.copy", "life.of", "join.frames"],
)  # fmt: skip
def test_hostile_numbers_break_nothing(tmp_path: Path, metric: str, value: float) -> None:
    folder = Synthetic(tests=("write_lat", "write_bw"), sizes=(64, 4096), repetitions=2).write(
        tmp_path
    )
    path = folder / "results.parquet"
    chosen = pl.col("metric") == metric
    pl.read_parquet(path).with_columns(
        pl.when(chosen).then(value).otherwise(pl.col("value")).alias("value")
    ).write_parquet(path)
    run = read.load(folder)
    for made in (
        life_figures.section(run),
        correlation_figures.section(run),
        stage_figures.section(run),
    ):
        for drawn in made.figures if made else ():
            for panel in drawn.panels:
                json.dumps(panel.chart, allow_nan=False)


def test_hostile_names_break_nothing(tmp_path: Path) -> None:
    folder = Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    path = folder / "results.parquet"
    rows = pl.read_parquet(path)
    odd = rows.filter(pl.col("metric").str.starts_with("life.tx."))
    junk = [
        odd.with_columns(pl.lit(name).alias("metric"))
        for name in ("life.tx.<script>", "life.tx", "life.", "life.span.x", "join.tx.'\"&", "join.")
    ]
    pl.concat([rows, *junk]).write_parquet(path)
    text = build(folder).read_text(encoding="utf-8")
    assert "<script" not in text
    assert html_tree.parse(text).all("section", id="life")[0].all("figure")
