# SPDX-License-Identifier: GPL-2.0-or-later
"""The committed sample report belongs to the committed numbers, and to today's code."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest

import html_tree
from html_tree import Element
from rocelab.report import build

SAMPLE = Path(__file__).parents[3] / "docs" / "sample-report"
RUN = Path(__file__).parents[1] / "data" / "sample-run.tar.gz"


def words(element: Element) -> list[str]:
    """All text outside drawings, whose layout may differ from one version of Vega to the next."""
    if element.tag in {"svg", "style"}:
        return []
    found: list[str] = []
    for part in element.parts:
        found += words(part) if isinstance(part, Element) else [part]
    return found


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The run that the sample shows, without the benchmarks' raw output."""
    with tarfile.open(RUN) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.mark.slow
def test_the_page_is_what_the_numbers_give(run: Path) -> None:
    committed = html_tree.parse((SAMPLE / "report.html").read_text(encoding="utf-8"))
    again = html_tree.parse(build(run).read_text(encoding="utf-8"))
    assert words(committed) == words(again), "run docs/sample-report/renew.py"


def test_it_is_a_real_run_without_raw_output(run: Path) -> None:
    meta = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert meta["status"] == "complete"
    assert "SYNTHETIC" not in json.dumps(meta["nodes"])
    assert meta["nodes"]["n1"]["driver"]["version"].startswith("rocelab-")
    assert {path.name for path in run.glob("cells/*/*")} == {"cell.json"}


def test_the_readme_quotes_the_sample() -> None:
    """The numbers below its picture are those of the picture."""
    readme = (SAMPLE.parents[1] / "README.md").read_text(encoding="utf-8")
    [said] = re.findall(r"^Here a message.*?(?=\n\n)", readme, re.DOTALL | re.MULTILINE)
    numbers = re.findall(r"\d+,\d{3}", said)
    assert len(numbers) == 5
    page = html_tree.parse((SAMPLE / "report.html").read_text(encoding="utf-8"))
    first = page.all("section", id="answer")[0].text
    assert [number for number in numbers if number not in first] == []


def test_the_folder_holds_what_a_reader_opens() -> None:
    """One page that needs no other file; no figure or number lies next to it."""
    assert {path.name for path in SAMPLE.iterdir()} == {"README.md", "renew.py", "report.html"}
