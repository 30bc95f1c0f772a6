# SPDX-License-Identifier: GPL-2.0-or-later
"""The notebook runs from its first cell to its last, on a real run, and on measured time."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"
SAMPLE = ROOT / "tests/unit/data/sample-run.tar.gz"


def carried_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the notebook's code leaves."""
    monkeypatch.setenv("ROCELAB_RUN", str(run))
    names: dict[str, Any] = {}
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text("utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    return names


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with tarfile.open(SAMPLE) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path


def test_from_results_to_a_figure(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = carried_out(run, monkeypatch)
    results = pl.read_parquet(run / "results.parquet")
    drawn = {(t, s): us for t, s, us in names["curves"].iter_rows()}
    assert {transport for transport, _ in drawn} == {"tcp", "rxe-v2"}
    [value] = results.filter(metric="latency.mean", tool="mpibench", transport="rxe-v2", size=64)[
        "value"
    ]
    assert drawn["rxe-v2", 64] == pytest.approx(value / 1e3)
    chart = names["figure"].to_dict()
    assert chart["encoding"]["y"]["title"] == "latency (emulated µs)"
    assert len(names["published"]) > 20


def test_measured_time_is_not_called_emulated(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run / "results.parquet"
    pl.read_parquet(path).with_columns(accelerator=pl.lit("native")).write_parquet(path)
    chart = carried_out(run, monkeypatch)["figure"].to_dict()
    assert chart["encoding"]["y"]["title"] == "latency (µs)"


def test_it_is_kept_without_output() -> None:
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        assert not cell.get("outputs")
