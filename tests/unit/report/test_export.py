# SPDX-License-Identifier: GPL-2.0-or-later
"""Exports; and figures take their numbers only from results.parquet."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import html_tree
from command_line import in_process as rocelab
from rocelab import units
from rocelab.errors import UsageError
from rocelab.report import build, export, table_files
from rocelab.report.figure import Column, Table
from synthetic_run import Synthetic

RUN = Synthetic(tests=("write_lat",), sizes=(64, 4096), timed=True, traced=False)
RAW = ("s64/client.out", "s64/wire.pcap", "s64/rxestat.n1.json", "s64/rxecpu.n1.json", "n1.pcapng")
MADE_OF = {"run.json", "results.parquet", "cell.json"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with raw output in its cells."""
    folder = RUN.write(tmp_path / RUN.run)
    for cell in (folder / "cells").iterdir():
        for name in RAW:
            (cell / name).parent.mkdir(exist_ok=True)
            (cell / name).write_text("raw output\n")
    return folder


def made(folder: Path) -> dict[str, bytes]:
    """Every file of the report."""
    build(folder)
    files = [folder / "report.html", *sorted((folder / "figures").iterdir())]
    return {path.name: path.read_bytes() for path in files}


@pytest.mark.slow
def test_the_report_outlives_the_raw_output(folder: Path) -> None:
    """Without raw files, and from a clean folder, it is the same byte for byte."""
    before = made(folder)
    assert len(before) > 4
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and path.name not in MADE_OF:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    left = {path.name for path in folder.rglob("*") if path.is_file()}
    assert left == MADE_OF
    assert made(folder) == before


def garbled(value: object, dice: random.Random) -> object:
    """The same JSON with every number replaced."""
    if isinstance(value, dict):
        return {key: garbled(item, dice) for key, item in value.items()}
    if isinstance(value, list):
        return [garbled(item, dice) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return dice.randrange(1, 10**6)
    return value


@pytest.mark.slow
def test_figures_are_of_results_alone(folder: Path) -> None:
    """Other numbers in every cell.json change no figure."""
    before = {name: data for name, data in made(folder).items() if name.endswith(".svg")}
    dice = random.Random(3)
    for path in folder.glob("cells/*/cell.json"):
        content = json.loads(path.read_text())
        content["steps"] = garbled(content["steps"], dice)
        path.write_text(json.dumps(content))
    after = made(folder)
    assert {name: data for name, data in after.items() if name.endswith(".svg")} == before


@pytest.mark.slow
def test_figures_follow_results(folder: Path) -> None:
    """Doubled values change every figure."""
    before = made(folder)
    path = folder / "results.parquet"
    pl.read_parquet(path).with_columns(pl.col("value") * 3.3).write_parquet(path)
    after = made(folder)
    assert set(before) == set(after)
    assert [name for name in before if before[name] == after[name]] == []


def test_what_is_exported(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "paper" / "figures"
    written = {path.name: path for path in export(folder, into)}
    build(folder)
    slugs = {path.stem for path in (folder / "figures").iterdir()}
    tables = {name for name in written if name.startswith("table-")}
    assert set(written) - tables == {
        "results.csv", "results.parquet", *(f"{s}.svg" for s in slugs), *(f"{s}.pdf" for s in slugs)
    }  # fmt: skip
    latency = "table-latency-one-way-half-rtt-tcg"
    assert {f"{latency}.csv", f"{latency}.tex"} <= tables
    page = html_tree.parse((folder / "report.html").read_text(encoding="utf-8"))
    shown = [t for s in page.all("section") for t in s.all("table")]
    assert len(tables) == 2 * len(shown)
    table = pl.read_parquet(folder / "results.parquet")
    assert_frame_equal(pl.read_parquet(written["results.parquet"]), table)
    assert_frame_equal(pl.read_csv(written["results.csv"], schema=table.schema), table)
    for slug in slugs:
        drawing = (into / f"{slug}.svg").read_bytes()
        assert drawing == (folder / "figures" / f"{slug}.svg").read_bytes()
        ElementTree.fromstring(drawing)
        pdf = (into / f"{slug}.pdf").read_bytes()
        assert pdf.startswith(b"%PDF-")
        assert b"/Font" in pdf
        assert b"/Subtype /Image" not in pdf


@pytest.mark.slow
def test_an_export_can_be_repeated_and_fails_with_words(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"

    def exported() -> dict[str, bytes]:
        # the order of a PDF's objects varies
        return {p.name: p.read_bytes() for p in export(folder, into) if p.suffix != ".pdf"}

    first = exported()
    (into / "mine.txt").write_text("kept")
    assert exported() == first
    assert (into / "mine.txt").read_text() == "kept"
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot export"):
        export(folder, tmp_path / "file")


@pytest.mark.slow
def test_the_option(folder: Path, tmp_path: Path) -> None:
    answer = rocelab("report", str(folder), "--export", str(tmp_path / "out"))
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "out" / "results.csv").exists()
    assert answer.stdout == f"{folder / 'report.html'}\n"


HOSTILE = Table(
    "a caption\nof two lines",
    (Column("name_%"), Column("CPU (µs)", numeric=True)),
    (
        (r"\input{/etc/passwd}", f"{units.MINUS}1,234.5"),
        ("=HYPERLINK(1)", units.ABSENT),
        ("a & b $x$ ~^#", "0.25"),
    ),
)


def test_a_table_as_csv_is_numbers_and_no_formula() -> None:
    rows = list(csv.reader(table_files.as_csv(HOSTILE).splitlines()))
    assert rows == [
        ["name_%", "CPU (µs)"],
        [r"\input{/etc/passwd}", "-1234.5"],
        ["'=HYPERLINK(1)", ""],
        ["a & b $x$ ~^#", "0.25"],
    ]


def test_a_table_as_latex_is_escaped() -> None:
    lines = table_files.as_latex(HOSTILE).splitlines()
    assert lines[:2] == ["% a caption of two lines", r"\begin{tabular}{lr}"]
    assert lines[3] == r"name\_\% & CPU (\textmu{}s) \\"
    assert lines[5:8] == [
        r"\textbackslash{}input\{/etc/passwd\} & $-$1,234.5 \\",
        r"=HYPERLINK(1) & -- \\",
        r"a \& b \$x\$ \textasciitilde{}\textasciicircum{}\# & 0.25 \\",
    ]
    assert lines[-1] == r"\end{tabular}"


@pytest.mark.parametrize("option", ["--export", "--share"])
def test_results_as_csv_have_no_formula(folder: Path, tmp_path: Path, option: str) -> None:
    path = folder / "results.parquet"
    formula = pl.lit('=HYPERLINK("http://evil.example/","x")')
    pl.read_parquet(path).with_columns(program=formula, unit=pl.lit("+1/s")).write_parquet(path)
    assert rocelab("report", str(folder), option, str(tmp_path / "out")).returncode == 0
    with (tmp_path / "out/results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 1
    texts = [text for row in rows for name, text in row.items() if name != "value"]
    assert not [text for text in texts if text.startswith(("=", "+", "-", "@", "\t", "\r"))]
