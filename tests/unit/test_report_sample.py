# SPDX-License-Identifier: GPL-2.0-or-later
"""The committed sample report belongs to the committed numbers, and to today's code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import html_tree
from html_tree import Element
from rocelab.report import build

SAMPLE = Path(__file__).parents[2] / "docs" / "sample-report"


def words(element: Element) -> list[str]:
    """All text outside drawings, whose layout may differ from one version of Vega to the next."""
    if element.tag in {"svg", "style"}:
        return []
    found: list[str] = []
    for part in element.parts:
        found += words(part) if isinstance(part, Element) else [part]
    return found


def test_the_page_is_what_the_numbers_give(tmp_path: Path) -> None:
    committed = html_tree.parse((SAMPLE / "report.html").read_text(encoding="utf-8"))
    copy = tmp_path / "sample"
    shutil.copytree(SAMPLE, copy)
    again = html_tree.parse(build(copy).read_text(encoding="utf-8"))
    assert words(committed) == words(again), "run docs/sample-report/renew.py"
    names = {path.name for path in (SAMPLE / "figures").iterdir()}
    assert names == {path.name for path in (copy / "figures").iterdir()}


def test_it_is_a_real_run_without_raw_output() -> None:
    meta = json.loads((SAMPLE / "run.json").read_text(encoding="utf-8"))
    assert meta["status"] == "complete"
    assert "SYNTHETIC" not in json.dumps(meta["nodes"])
    assert meta["nodes"]["n1"]["driver"]["version"].startswith("rocelab-")
    assert {path.name for path in SAMPLE.glob("cells/*/*")} == {"cell.json"}
