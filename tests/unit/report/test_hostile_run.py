# SPDX-License-Identifier: GPL-2.0-or-later
"""A run folder is hostile input and may be incomplete."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import html_tree
from html_tree import Element
from rocelab.errors import UsageError
from rocelab.report import build
from synthetic_run import Synthetic

EVIL = "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}${7*7}"
CONTROLS = "a\x00b\x1b[31mc\u202ed\ufffe\ud800"


def edit(path: Path, **members: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    content.update(members)
    path.write_text(json.dumps(content), encoding="utf-8")


def built(folder: Path) -> Element:
    text = build(folder).read_text(encoding="utf-8")
    text.encode("utf-8")
    return html_tree.parse(text)


NAMES = (CONTROLS, "x" * 4000, "", "..", "../../../../etc/passwd")


def slow(value: str) -> Any:
    """For parametrize: a value that `make check` leaves out."""
    return pytest.param(value, marks=pytest.mark.slow)


def section(page: Element, anchor: str) -> str:
    [only] = page.all("section", id=anchor)
    return only.text


@pytest.mark.parametrize("evil", [EVIL, *map(slow, NAMES)])
def test_hostile_names_stay_text_and_inside_the_folder(tmp_path: Path, evil: str) -> None:
    folder = tmp_path / "runs" / "run"
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(folder)
    meta = json.loads((folder / "run.json").read_text())
    meta["run"] = meta["rocelab"] = meta["status"] = meta["reason"] = evil
    meta["plan"]["plan"] |= {"name": evil, "transports": [evil, "tcp"], "seed": evil}
    meta["cells"] += [evil, f"../{evil}"]
    meta["nodes"] = {evil: meta["nodes"]["n1"] | {"kernel": evil, "sysctls": {evil: evil}}}
    (folder / "run.json").write_text(json.dumps(meta))
    [cell, *_] = (folder / "cells").glob("*rxe*")
    edit(
        cell / "cell.json",
        status="error",
        transport=evil,
        error={"what": evil, "cause": evil, "action": evil, "kind": evil, "size": 64},
    )
    path = folder / "results.parquet"
    names = ("run", "tool", "transport", "node", "driver", "program", "accelerator")
    texts = pl.lit(evil.replace("\ud800", ""))
    pl.read_parquet(path).with_columns(**dict.fromkeys(names, texts)).write_parquet(path)

    page = built(folder)

    assert not page.all("script") + page.all("img") + page.all("iframe")
    assert not [e for e in page.walk() if any(a.startswith("on") for a in e.attributes)]
    assert "49" not in page.all("h1")[0].text
    if evil == EVIL:
        assert f"{EVIL} and tcp compared" in page.all("h1")[0].text
        assert EVIL in section(page, "errors")
    if evil == CONTROLS:
        assert "a\ufffdb\ufffd[31mc\ufffdd" in page.all("h1")[0].text
    # only the report and its figures were created, and only here
    assert [p.name for p in tmp_path.iterdir()] == ["runs"]
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["run"]
    assert {p.name for p in folder.iterdir()} == {
        "run.json", "results.parquet", "cells", "report.html", "figures",
    }  # fmt: skip
    assert all(p.suffix == ".svg" and len(p.name) < 100 for p in (folder / "figures").iterdir())


@pytest.mark.slow
def test_figures_whose_names_come_out_alike_are_both_kept(tmp_path: Path) -> None:
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    path = tmp_path / "results.parquet"
    frame = pl.read_parquet(path)
    twin = frame.with_columns(tool=pl.lit("PERF-test")).filter(pl.col("transport") == "rxe-v2")
    frame = frame.with_columns(tool=pl.lit("perf/test"))
    pl.concat([frame, twin]).write_parquet(path)
    page = built(tmp_path)
    names = {figure.attributes["id"] for figure in page.all("div", class_="card")}
    assert {
        "stages-perf-test-write-lat-packets-tcg",
        "stages-perf-test-write-lat-packets-tcg-2",
    } <= names
    assert names == {path.stem for path in (tmp_path / "figures").iterdir()}


JUNK: list[Any] = [None, True, 3, -1.5, "text", [], [1], [None], {}, {"a": {"b": []}}, 1e999]


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_members_of_another_type_read_as_absent(tmp_path: Path, junk: Any) -> None:
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    (tmp_path / "results.parquet").unlink()
    meta = json.loads((tmp_path / "run.json").read_text())
    for key in meta.keys() - {"schema"}:
        meta[key] = junk
    (tmp_path / "run.json").write_text(json.dumps(meta))
    for path in tmp_path.glob("cells/*/cell.json"):
        cell = json.loads(path.read_text())
        for key in cell.keys() - {"schema", "steps"}:
            cell[key] = junk
        cell["steps"] = [junk, *({**step, "frames": junk, "proof": junk} for step in cell["steps"])]
        path.write_text(json.dumps(cell))
    page = built(tmp_path)
    assert len(page.all("section")) == 12


def test_only_tcp(tmp_path: Path) -> None:
    Synthetic(transports=("tcp",), sizes=(64,)).write(tmp_path)
    page = built(tmp_path)
    assert "has no stage costs" in section(page, "stages")
    assert "has no coverage" in section(page, "coverage")
    assert {figure.attributes["id"] for figure in page.all("div", class_="card")} == {
        "answer-cost-tcg",
        "latency-one-way-half-rtt-tcg",
        "bandwidth-one-way-tcg",
        "correlation-inverse-bandwidth-one-way-tcg",
        "correlation-latency-one-way-half-rtt-tcg",
        "wire-tcg",
    }


def test_only_errors(tmp_path: Path) -> None:
    run = Synthetic(tests=("write_lat",), sizes=(64,), repetitions=2)
    run = dataclasses.replace(run, failing=tuple(name for name, *_ in run.cells()))
    run.write(tmp_path)
    page = built(tmp_path)
    assert not page.all("div", class_="card")
    assert not list((tmp_path / "figures").iterdir())
    assert "no results, so there are no findings" in section(page, "findings")
    assert "0 of 4 cells gave a result" in section(page, "findings")
    [table] = page.all("section", id="errors")[0].all("table")
    assert [row["kind"] for row in table.table()] == ["proof"] * 4
    [_, failed] = page.all("section", id="proof")[0].all("table")
    assert "expected 2500, found 2498" in failed.table()[0]["check"]


@pytest.mark.slow
def test_errors_are_listed_and_their_numbers_are_not(tmp_path: Path) -> None:
    failing = "perftest-write_lat.rxe-v2.r02"
    Synthetic(tests=("write_lat",), sizes=(64,), failing=(failing,)).write(tmp_path)
    page = built(tmp_path)
    [row] = page.all("section", id="errors")[0].all("table")[0].table()
    assert row["cell"] == failing
    assert row["what to do"] == "look at wire.pcap of this cell"
    [figure] = page.all("div", id="latency-one-way-half-rtt-tcg")
    counts = {row["transport"]: row["repetitions"] for row in figure.all("table")[0].table()}
    assert counts == {"tcp": "3", "rxe-v2": "2"}
    assert "5 of 6 cells gave a result" in section(page, "answer")


@pytest.mark.slow
def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    run = Synthetic(tests=("write_lat",), sizes=(64,), status="interrupted")
    run.write(tmp_path)
    gone = tmp_path / "cells" / "perftest-write_lat.tcp.r03"
    (gone / "cell.json").unlink()
    part = tmp_path / "cells" / ".perftest-write_lat.tcp.r04.part"
    part.mkdir()
    (part / "cell.json").write_text("{}")
    page = built(tmp_path)
    assert "was interrupted" in page.all("header")[0].text
    assert "no readable cell.json" in section(page, "errors")
    assert ".part" not in page.text


def test_no_cells_and_no_results(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": "rocelab.run/1"}')
    page = built(tmp_path)
    assert not page.all("div", class_="card")
    assert "has no cells" in section(page, "proof")
    assert "run.json has no facts about the nodes" in section(page, "where")


@pytest.mark.slow
def test_nodes_that_differ_are_flagged(tmp_path: Path) -> None:
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    assert "differ only in their addresses" in section(built(tmp_path), "where")
    meta = json.loads((tmp_path / "run.json").read_text())
    meta["nodes"]["n2"]["nic"]["offloads"]["tcp-segmentation-offload"] = False
    (tmp_path / "run.json").write_text(json.dumps(meta))
    text = section(built(tmp_path), "where")
    assert "The nodes differ in: offloads that are on and tcp-segmentation-offload" in text


@pytest.mark.parametrize("content", [None, "", "[]", "nonsense", '{"schema": "rocelab.run/9"}'])
def test_no_run_there(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(UsageError) as caught:
        build(tmp_path)
    assert caught.value.cause
    assert caught.value.action
    assert not (tmp_path / "report.html").exists()


def test_damaged_results(tmp_path: Path) -> None:
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    path = tmp_path / "results.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="cannot be read"):
        build(tmp_path)
    pl.DataFrame({"run": ["x"]}).write_parquet(path)
    with pytest.raises(UsageError, match="cannot be read"):
        build(tmp_path)


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    Synthetic(tests=("write_lat",), sizes=(64, 1024), repetitions=1).write(tmp_path)
    path = tmp_path / "results.parquet"
    odd = (pl.col("size") == 1024) & (pl.col("transport") == "tcp")
    pl.read_parquet(path).with_columns(
        value=pl.when(odd).then(float("nan")).otherwise(pl.col("value"))
    ).write_parquet(path)
    page = built(tmp_path)
    [figure] = page.all("div", id="latency-one-way-half-rtt-tcg")
    assert len(figure.all("table")[0].table()) == 3
    assert "nan" not in page.text.lower()
