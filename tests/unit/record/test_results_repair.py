# SPDX-License-Identifier: GPL-2.0-or-later
"""A run without results.parquet: it is rebuilt from the cells, or the error is harmless."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from fake_testbed import MESSAGES, FakeTestbed
from rocelab.errors import UsageError
from rocelab.measure import results, runner
from rocelab.plans import plan_file
from rocelab.record import read, results_table
from rocelab.report import build

PLAN = plan_file.from_toml(
    f"""
[plan]
name = "damaged"
repetitions = 2
transports = ["rxe-v2"]
probes = []
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64]
iterations = {MESSAGES}
""",
    "damaged.toml",
)


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A run as the runner writes it."""
    return runner.run(PLAN, FakeTestbed(), tmp_path).path


def missing(path: Path) -> None:
    path.unlink()


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere.parquet")
    path.symlink_to("../elsewhere.parquet")


@pytest.mark.parametrize("damage", [missing, half, link], ids=lambda by: by.__name__)
def test_results_are_made_again_without_nodes(measured: Path, damage: object) -> None:
    before = results_table.load(measured)
    assert callable(damage)
    damage(measured / "results.parquet")
    with pytest.raises(UsageError, match="cannot be read"):
        read.load(measured)
    assert results.repair(measured)
    assert not (measured / "results.parquet").is_symlink()
    assert_frame_equal(results_table.load(measured), before)
    assert not results.repair(measured)


@pytest.mark.parametrize("damage", [missing, half], ids=lambda by: by.__name__)
def test_without_raw_output_the_old_report_stays(measured: Path, damage: object) -> None:
    page = build(measured)
    before = page.read_bytes()
    for step in measured.glob("cells/*/64"):
        shutil.rmtree(step)
    assert callable(damage)
    damage(measured / "results.parquet")
    with pytest.raises(UsageError, match="cannot be read") as caught:
        results.repair(measured)
    assert "cannot be made again" in caught.value.cause
    assert caught.value.action
    with pytest.raises(UsageError, match="cannot be read"):
        build(measured)
    assert page.read_bytes() == before
