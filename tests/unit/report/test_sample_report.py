# SPDX-License-Identifier: GPL-2.0-or-later
"""The sample report: the README quotes it, and a release has it."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest

import html_tree
from rocelab.report import build

ROOT = Path(__file__).parents[3]
RUN = Path(__file__).parents[1] / "data" / "sample-run.tar.gz"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The run that the sample shows, without the benchmarks' raw output."""
    with tarfile.open(RUN) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path


def test_it_is_a_real_run_without_raw_output(run: Path) -> None:
    meta = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert meta["status"] == "complete"
    assert "SYNTHETIC" not in json.dumps(meta["nodes"])
    assert meta["nodes"]["n1"]["driver"]["version"].startswith("rocelab-")
    assert {path.name for path in run.glob("cells/*/*")} == {"cell.json"}


@pytest.mark.slow
def test_the_readme_quotes_the_sample(run: Path) -> None:
    """The numbers below its picture are those of the picture."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [said] = re.findall(r"^Here a message.*?(?=\n\n)", readme, re.DOTALL | re.MULTILINE)
    numbers = re.findall(r"\d+,\d{3}|\d+\.\d%", said)
    assert len(numbers) == 4
    page = html_tree.parse(build(run).read_text(encoding="utf-8"))
    first = page.all("section", id="answer")[0].text
    assert [number for number in numbers if number not in first] == []
