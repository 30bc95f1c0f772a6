# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of a module's `RUN`, and its results."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder."""
    run = request.module.RUN
    path: Path = run.write(tmp_path_factory.mktemp("runs") / run.run)
    return path


@pytest.fixture(scope="module")
def results(folder: Path) -> pl.DataFrame:
    """Its results.parquet."""
    return pl.read_parquet(folder / "results.parquet")
