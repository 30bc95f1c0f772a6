# SPDX-License-Identifier: GPL-2.0-or-later
"""Invented results of MPI benchmarks, for tests of the studies. No number was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from rocelab.record.results_table import SCHEMA
from synthetic_run import Synthetic

_UNITS = {"latency.mean": ("one_way_half_rtt", "ns"), "bandwidth": ("one_way", "bytes/s")}
_NOISE = (0.998, 1.001, 1.0, 0.999, 1.002, 1.0005, 0.9995, 1.0015)


@dataclass(frozen=True)
class Line:
    """One benchmark over one transport: its value by size, give or take 0.2 %."""

    test: str
    transport: str
    metric: str
    values: Mapping[int, float]
    kind: str = ""
    unit: str = ""
    exact: bool = False
    tool: str = "mpibench"


def table(
    lines: Sequence[Line], *, repetitions: int = 6, accelerator: str = "native", run: str = "r"
) -> pl.DataFrame:
    """Results in the documented format."""
    rows = []
    for line in lines:
        kind, unit = _UNITS.get(line.metric, (line.kind, line.unit))
        for repetition in range(1, repetitions + 1):
            for size, value in line.values.items():
                noise = 1.0 if line.exact else _NOISE[(repetition + size) % len(_NOISE)]
                rows.append(
                    (
                        *(run, line.tool, line.test, line.transport, repetition, size, "n1"),
                        *(line.metric, line.kind or kind, value * noise, line.unit or unit),
                        *(accelerator, "rdma_rxe x", f"{line.tool} {line.test}"),
                    )
                )
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def write_run(folder: Path, results: pl.DataFrame, *, study: str = "") -> Path:
    """A run folder with these results."""
    accelerator = str(results["accelerator"][0])
    Synthetic(name=folder.name, tests=("write_lat",), sizes=(64,), accelerator=accelerator).write(
        folder
    )
    meta = json.loads((folder / "run.json").read_text())
    meta["plan"]["plan"]["study"] = study
    (folder / "run.json").write_text(json.dumps(meta))
    results.write_parquet(folder / "results.parquet")
    return folder
