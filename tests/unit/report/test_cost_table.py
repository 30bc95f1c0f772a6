# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of costs: each number recomputed from results.parquet, missing ones are dashes."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import polars as pl
import pytest

import report_page
from rocelab import units
from study_results import Line, table, write_run
from synthetic_run import Synthetic

RUN = Synthetic(
    transports=("tcp", "rxe-v2"),
    tests=("write_lat", "write_bw"),
    sizes=(64, 4096),
    accelerator="native",
    timed=True,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return RUN.write(tmp_path_factory.mktemp("runs") / RUN.run)


def rows(folder: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    page = report_page.page(folder, "costs")
    [section] = page.all("section", id="costs")
    return {
        (table.all("caption")[0].text.partition(",")[0], row["size"], row["transport"]): row
        for table in section.all("table")
        for row in table.table()
    }


def medians(results: pl.DataFrame, **where: object) -> list[float]:
    """One median over the repetitions for each node and kind."""
    groups = results.filter(**where).group_by("node", "kind", maintain_order=True)
    return [statistics.median(group["value"]) for _, group in groups]


def test_each_cost(folder: Path) -> None:
    results = pl.read_parquet(folder / "results.parquet")
    by_line = rows(folder)
    assert len(by_line) == 8
    for test, size, transport in itertools.product(RUN.tests, RUN.sizes, RUN.transports):
        row = by_line[f"perftest {test}", units.size(size), transport]
        here = {"test": test, "size": size, "transport": transport}
        if test == "write_lat":
            [time] = medians(results, metric="latency.mean", **here)
        else:
            [rate] = medians(results, metric="message_rate", **here)
            time = 1e9 / rate
        assert row["time per message"] == units.number(time)
        assert row["time per byte"] == units.number(time / size)
        kernel = sum(medians(results, metric="cpu.per_message", kind="kernel", **here))
        assert row["kernel CPU per message with start"] == units.number(kernel)
        assert row["kernel CPU per byte with start"] == units.number(kernel / size)
        every = sum(medians(results, metric="cpu.per_message", kind="communication", **here))
        assert row["all CPU per message with start"] == units.number(every)
        [header] = medians(results, metric="wire.header_bytes", **here)
        assert row["header bytes per frame"] == units.number(header)
        if transport == "tcp":
            assert row["mean encapsulation per packet"] == units.ABSENT


def test_cpu_of_one_more_message(tmp_path: Path) -> None:
    """Where it is known it takes the place of what contains the start; of all nodes together."""
    costs = (("cpu.per_message", "marginal_kernel", 700.0), ("cost.message", "marginal", 900.0))
    lines = [
        Line("latency", "rxe-v2", "latency.mean", {64: 8000.0}, exact=True),
        Line("latency", "rxe-v2", "cpu.per_message", {64: 9e6}, kind="kernel", exact=True),
        *(
            Line("latency", "rxe-v2", metric, {64: value}, kind=kind, exact=True)
            for metric, kind, value in costs
        ),
    ]
    by_line = rows(write_run(tmp_path / "run", table(lines)))
    row = by_line["mpibench latency", units.size(64), "rxe-v2"]
    assert row["kernel CPU per message"] == units.number(700)
    assert row["kernel CPU per byte"] == units.number(700 / 64)
    assert row["all CPU per message"] == units.number(900)
    assert not [name for name in row if name.endswith("message with start")]


def test_encapsulation_is_weighted_by_packets(folder: Path) -> None:
    """Classes and nodes with more packets weigh more."""
    results = pl.read_parquet(folder / "results.parquet")
    here = results.filter(test="write_lat", transport="rxe-v2", size=64)
    total = packets = 0.0
    for (node, kind), group in here.filter(metric="encapsulation.mean").group_by("node", "kind"):
        [count] = medians(here, metric="stage.tx.bth.count", node=node, kind=kind)
        total += statistics.median(group["value"]) * count
        packets += count
    row = rows(folder)["perftest write_lat", units.size(64), "rxe-v2"]
    assert row["mean encapsulation per packet"] == units.number(total / packets)


def test_a_column_of_dashes_is_left_out(tmp_path: Path) -> None:
    lines = [Line("latency", "rxe-v2", "latency.mean", {4: 8000.0, 1024: 9000.0}, exact=True)]
    folder = write_run(tmp_path / "run", table(lines))
    row = rows(folder)["mpibench latency", units.size(1024), "rxe-v2"]
    assert row["time per message"] == units.number(9000)
    assert (
        not {
            "kernel CPU per message with start",
            "frames per message",
            "mean encapsulation per packet",
        }
        & row.keys()
    )


def test_what_an_mpirun_spent_on_all_its_sizes(tmp_path: Path) -> None:
    """Costs of all sizes together belong to no size: own row, own stages, own CPU split."""
    run = Synthetic(tests=("write_lat",), sizes=(64,), accelerator="native", timed=True)
    folder = run.write(tmp_path / run.run)
    results = pl.read_parquet(folder / "results.parquet")
    measured = pl.col("metric").str.contains(r"^(latency\.|bandwidth|message_rate)")
    per_message = pl.col("kind") == "per_message"
    together = results.with_columns(
        size=pl.when(measured).then("size"),
        kind=pl.when(per_message).then(pl.lit("per_packet")).otherwise("kind"),
    ).filter(pl.col("metric") != "cpu.per_message")
    together.write_parquet(folder / "results.parquet")
    by_line = rows(folder)
    sized = by_line["perftest write_lat", units.size(64), "rxe-v2"]
    whole = by_line["perftest write_lat", "all sizes", "rxe-v2"]
    assert (whole["time per message"], whole["time per byte"]) == (units.ABSENT, units.ABSENT)
    assert (sized["mean encapsulation per packet"], sized["header bytes per frame"]) == (
        units.ABSENT,
        units.ABSENT,
    )
    here = results.filter(transport="rxe-v2")
    [header] = medians(here, metric="wire.header_bytes")
    assert whole["header bytes per frame"] == units.number(header)
    packet = medians(here, metric="cpu.per_packet", kind="kernel")
    assert whole["kernel CPU per packet with start"] == units.number(statistics.fmean(packet))
    page = report_page.page(folder, "stages", "cpu", "headers")
    for section in ("stages", "cpu", "headers"):
        [part] = page.all("section", id=section)
        assert "all sizes" in part.text, section
    [split] = page.all("section", id="cpu")
    assert "CPU time of a packet, with start and probes: perftest write_lat" in split.text


def test_emulated_costs_are_called_so(tmp_path: Path) -> None:
    lines = [Line("latency", "tcp", "latency.mean", {4: 8000.0})]
    folder = write_run(tmp_path / "run", table(lines, accelerator="tcg"))
    page = report_page.page(folder, "costs")
    [section] = page.all("section", id="costs")
    assert "emulated ns" in section.all("caption")[0].text
