# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's results as one JSON document: every series with its spread (docs/formats/json.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocelab.record import read
from rocelab.record.read import Series
from rocelab.units import ALL_SIZES

SCHEMA = "rocelab.show/1"


def of(run_dir: Path) -> dict[str, Any]:
    """Return the document of a run. Raises UsageError when there is none, or it is broken."""
    run = read.load(run_dir)
    return {
        "schema": SCHEMA,
        "run": run.name,
        "status": run.meta.text("status"),
        "accelerator": run.meta.text("accelerator"),
        "cells": [{"cell": cell.name, "status": cell.status} for cell in run.cells],
        "results": [_result(series) for series in run.series],
    }


def _result(series: Series) -> dict[str, Any]:
    spread = series.spread
    interval = spread.interval
    return {
        "accelerator": series.accelerator,
        "tool": series.tool,
        "test": series.test,
        "transport": series.transport,
        "size": None if series.size == ALL_SIZES else series.size,
        "node": series.node,
        "metric": series.metric,
        "kind": series.kind,
        "unit": series.unit,
        "repetitions": spread.count,
        "median": spread.median,
        "mean": spread.mean,
        "smallest": spread.low,
        "largest": spread.high,
        "interval": None if interval is None else [interval.low, interval.high],
    }
