# SPDX-License-Identifier: GPL-2.0-or-later
"""Flame graphs in a report: only on request, every stack in its place, hostile names escaped."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from html_tree import parse
from rocelab.record import folded_stacks, read, share
from rocelab.report import document, flame_graph, render
from synthetic_run import Synthetic

STACKS = """\
running;syscall;benchmark;ib_write_lat;lib.so.1+0x12;lib.so.1+0xff;entry;rxe_post_send 600
running;softirq.net_rx;rxe;ib_write_lat;net_rx_action;rxe_rcv;rxe_icrc_check 300
running;softirq.net_rx;rxe;ib_write_lat;net_rx_action;rxe_rcv 50
running;kthread;rxe;kworker/u4:1;process_one_work;<script>alert(1)</script>&x 49
running;syscall;benchmark;ib_write_lat;entry;narrow 0
blocked;syscall;benchmark;ib_write_lat;entry;schedule 99999
no stack at all
running;a b 7
"""


def run(folder: Path, *, asked: bool = True, accelerator: str = "kvm", text: str = STACKS) -> Path:
    """A run whose first cell has stacks at both nodes."""
    lab = Synthetic(transports=("rxe-v2",), tests=("write_lat",), accelerator=accelerator)
    lab.write(folder)
    meta = json.loads((folder / "run.json").read_text())
    meta["plan"]["plan"]["stacks"] = asked
    (folder / "run.json").write_text(json.dumps(meta))
    step = folder / "cells" / next(lab.cells())[0] / "64"
    step.mkdir(exist_ok=True)
    for node in ("n1", "n2"):
        (step / folded_stacks.file_name(node)).write_text(text)
    return folder


def test_sums(tmp_path: Path) -> None:
    """Both nodes' stacks are added; lines of another form, and waits, are not."""
    (stacks,) = read.load(run(tmp_path)).stacks
    assert (stacks.tool, stacks.test, stacks.transport) == ("perftest", "write_lat", "rxe-v2")
    assert sum(stacks.microseconds.values()) == 2 * (600 + 300 + 50 + 49)
    assert all(
        frames[0] in {"syscall", "softirq.net_rx", "kthread"} for frames in stacks.microseconds
    )


def test_only_on_request(tmp_path: Path) -> None:
    assert read.load(run(tmp_path, asked=False)).stacks == ()
    assert flame_graph.section(read.load(tmp_path)) is None


@pytest.mark.parametrize("accelerator", ["kvm", "icount"])
def test_figure(tmp_path: Path, accelerator: str) -> None:
    """Widths are the sums, callers lie below, and emulated work is no time."""
    section = flame_graph.section(read.load(run(tmp_path, accelerator=accelerator)))
    assert section is not None
    (figure,) = section.figures
    (panel,) = figure.panels
    (table,) = figure.tables
    counts = accelerator == "icount"
    amounts = {row[0]: row[3] for row in table.rows}
    assert list(amounts)[:2] == ["rxe_post_send", "rxe_icrc_check"]
    assert amounts["rxe_rcv"] == ("100,000" if counts else "100\N{NARROW NO-BREAK SPACE}µs")
    assert ("instructions" in panel.title) == counts
    drawn_bars, _ = panel.chart["layer"]
    rows = panel.chart["datasets"][drawn_bars["data"]["name"]]
    bars = {row["label"].rpartition(":")[0]: row for row in rows}
    scale = flame_graph.WIDTH / (2 * 999)
    assert bars["rxe_post_send"]["end"] - bars["rxe_post_send"]["start"] == pytest.approx(
        1200 * scale
    )
    caller, callee = bars["rxe_rcv"], bars["rxe_icrc_check"]
    assert caller["start"] <= callee["start"] <= callee["end"] <= caller["end"]
    assert caller["top"] == callee["bottom"]
    assert bars["lib.so.1"]["bottom"] == bars["ib_write_lat"]["top"]
    assert bars["lib.so.1"]["top"] == bars["entry"]["bottom"]
    assert callee["colour"] != bars["rxe_post_send"]["colour"]
    assert "narrow" not in bars
    drawn = render.figure_file(figure)
    root = ElementTree.fromstring(drawn)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert "rxe_icrc_check" in drawn


def test_page(tmp_path: Path) -> None:
    """The page shows it, and a name of a frame is only text."""
    page = render.page(document.compose(read.load(run(tmp_path))))
    assert "Flame graphs" in page
    assert "rxe_icrc_check" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    parse(page)


def test_deep_and_wide(tmp_path: Path) -> None:
    """A hostile file cannot make a drawing without bounds."""
    deep = ";".join(f"f{n}" for n in range(290))
    wide = "\n".join(f"running;syscall;other;x;w{n} 1" for n in range(20_000))
    text = f"running;syscall;other;x;{deep} 20000\n{wide}\nrunning;{'a;' * 400}b 9\n"
    section = flame_graph.section(read.load(run(tmp_path, text=text)))
    assert section is not None
    ((panel,),) = (figure.panels for figure in section.figures)
    rows = [row for rows in panel.chart["datasets"].values() for row in rows]
    assert panel.chart["height"] <= 70 * flame_graph.ROW
    assert len(rows) < 200


def test_missing_files(tmp_path: Path) -> None:
    """Raw output may be deleted, or not be a file."""
    folder = run(tmp_path)
    for path in folder.glob("cells/*/64/rxecpu.*.folded"):
        path.unlink()
        path.mkdir()
    assert read.load(folder).stacks == ()


def test_shared_reports_have_none(tmp_path: Path) -> None:
    """Stacks name every program that ran."""
    assert share.mask_run(read.load(run(tmp_path))).stacks == ()
