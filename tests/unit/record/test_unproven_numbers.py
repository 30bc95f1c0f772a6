# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers whose cell.json is damaged have no proof: every reader of results leaves them out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from rocelab.compare import driver_change, packet_costs
from rocelab.compare.comparison import compare
from rocelab.compare.packet_costs import Measured
from rocelab.errors import CellError
from rocelab.terminal import fit_tables, run_tables
from synthetic_run import Synthetic

_DAMAGED = "perftest-write_lat.rxe-v2.r01"


def _fits(run: Path) -> str:
    text = io.StringIO()
    fit_tables.show(run, Console(file=text, width=120))
    return text.getvalue()


def _shown(run: Path) -> str:
    text = io.StringIO()
    run_tables.show(run, Console(file=text, width=120))
    # cell.json says which cells failed; the numbers are in the results
    return text.getvalue().partition("Failed")[0]


def _costs(run: Path) -> object:
    return packet_costs.of([Measured("a", "crypto API", (run,))]).drivers


def _compared(run: Path) -> object:
    return [(cell.transport, cell.size, cell.first) for cell in compare(run, run).cells]


@pytest.mark.parametrize("reader", [_compared, _costs, _fits, _shown])
def test_they_count_for_nothing(tmp_path: Path, reader: Callable[[Path], Any]) -> None:
    """As if the table did not have them."""
    run = Synthetic(tests=("write_lat",), repetitions=2, accelerator="native").write(tmp_path)
    whole = reader(run)
    (run / "cells" / _DAMAGED / "cell.json").write_text("{")
    without = reader(run)
    path = run / "results.parquet"
    rows = pl.read_parquet(path)
    of_it = (pl.col("transport") == "rxe-v2") & (pl.col("repetition") == 1)
    assert rows.filter(of_it).height
    rows.filter(~of_it).write_parquet(path)
    assert without == reader(run)
    assert without != whole


@pytest.mark.parametrize(("kind", "left"), [("proof", {"tcp"}), ("stall", {"tcp", "rxe-v2"})])
def test_a_cell_that_failed(tmp_path: Path, kind: str, left: set[str]) -> None:
    """Nothing of it counts, as in a table of before; but what it proved before a size stalled."""
    run = Synthetic(tests=("write_lat",), repetitions=1, accelerator="native").write(tmp_path)
    path = run / "cells" / _DAMAGED / "cell.json"
    changed = {"status": "error", "error": {"kind": kind}}
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    assert {cell.transport for cell in compare(run, run).cells} == left


def _with_cheapest(run: Path) -> Path:
    """Say of each stage what its cheapest packet cost."""
    path = run / "results.parquet"
    rows = pl.read_parquet(path)
    means = rows.filter(pl.col("metric").str.contains(r"^stage\..*\.mean$"))
    cheapest = means.with_columns(pl.col("metric").str.replace(r"\.mean$", ".min"))
    pl.concat([rows, cheapest]).write_parquet(path)
    return run


def test_a_driver_is_not_judged_by_them(tmp_path: Path) -> None:
    whole, damaged = (
        _with_cheapest(Synthetic(tests=("write_lat",), repetitions=1).write(tmp_path / name))
        for name in ("whole", "damaged")
    )
    assert driver_change.judge([whole], [damaged]).stages
    (damaged / "cells" / _DAMAGED / "cell.json").write_text("{")
    with pytest.raises(CellError, match="no stage in common"):
        driver_change.judge([whole], [damaged])
