# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of application benchmarks in the report, on the terminal and in comparisons."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
from rich.console import Console

import html_tree
from rocelab import units
from rocelab.compare.comparison import Verdict, compare
from rocelab.report import build
from rocelab.terminal import run_tables
from study_results import Line, table, write_run

APPLICATION = "application"


def results(accelerator: str = "native", faster: float = 1.0) -> pl.DataFrame:
    lines = [
        Line(
            *("all", transport, f"application.{metric}", {size: value * factor * faster}),
            *(APPLICATION, unit),
        )
        for transport, factor in (("rxe-v2", 2.0), ("tcp", 1.0))
        for metric, size, value, unit in (
            ("hpl.rate", 0, 2e9, "1/s"),
            ("ping_pong.latency", 8, 26e6 / faster, "ns"),
        )
    ]
    return table(lines, accelerator=accelerator).with_columns(
        tool=pl.lit("hpcc"), program=pl.lit("hpcc all")
    )


def test_transports_stand_beside_each_other(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", results())
    page = html_tree.parse(build(folder).read_text(encoding="utf-8"))
    [section] = page.all("section", id="applications")
    rows = section.all("table")[0].table()
    assert [(row["figure"], row["transport"]) for row in rows] == [
        ("HPL, operations", "tcp"),
        ("HPL, operations", "rxe-v2"),
        (f"ping-pong, latency, 8{units.NARROW_SPACE}B", "tcp"),
        (f"ping-pong, latency, 8{units.NARROW_SPACE}B", "rxe-v2"),
    ]
    assert {row["unit"] for row in rows[2:]} == {"ms"}
    assert (rows[2]["median"], rows[3]["median"]) == ("26.01", "52.01")
    assert all(row["repetitions"] == "6" for row in rows)


def test_emulated_figures_are_called_so(tmp_path: Path) -> None:
    page = html_tree.parse(
        build(write_run(tmp_path / "run", results("tcg"))).read_text(encoding="utf-8")
    )
    [section] = page.all("section", id="applications")
    assert all(row["unit"].startswith("emulated ") for row in section.all("table")[0].table())


def test_a_run_without_applications_has_no_such_section(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", table([Line("bw", "tcp", "bandwidth", {4: 1e6})]))
    page = html_tree.parse(build(folder).read_text(encoding="utf-8"))
    assert not page.all("section", id="applications")


def test_they_compare(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", results())
    other = write_run(tmp_path / "other", results(faster=1.5))
    verdicts = {(c.metric, c.transport): c.verdict for c in compare(one, other).cells}
    assert verdicts["application.hpl.rate", "tcp"] == Verdict.BETTER
    # 1.5 / 1.5: as long as before
    assert verdicts["application.ping_pong.latency", "tcp"] == Verdict.NO_EVIDENCE


def test_the_terminal_has_them(tmp_path: Path) -> None:
    plan = '{"tool": "hpcc", "test": "all", "sizes": [0]}'
    folder = write_run(tmp_path / "run", results())
    text = (folder / "run.json").read_text()
    begin, end = text.index('"benchmark": ['), text.index('"cells": [')
    (folder / "run.json").write_text(f'{text[:begin]}"benchmark": [{plan}]}}, {text[end:]}')
    out = io.StringIO()
    run_tables.show(folder, Console(file=out, width=run_tables.WIDTH))
    lines = [line for line in out.getvalue().splitlines() if "ping_pong.latency" in line]
    assert [line.split()[:4] for line in lines] == [
        ["ping_pong.latency", "tcp", "ms", "26.0"],
        ["ping_pong.latency", "rxe-v2", "ms", "52.0"],
    ]
    assert "hpcc all" in out.getvalue()
