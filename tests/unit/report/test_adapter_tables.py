# SPDX-License-Identifier: GPL-2.0-or-later
"""A report of cells over adapters, from counters of real adapters.

irdma's are of an E810 (linux-rdma, review of the driver, 2021), mlx5's of a ConnectX in a bond
(notes on RoCE statistics), efa's of AWS (a sampling script, 2023), all unchanged. Each stands for
the counters of both ends after a benchmark that started at zero.
"""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import polars as pl
import pytest

import report_page
from html_tree import Element
from rocelab import units
from rocelab.measure import counters, results
from rocelab.measure.counters import Counters
from rocelab.measure.transport_proof import prove
from rocelab.plans import plan_file
from rocelab.plans.benchmarks import perftest
from rocelab.plans.benchmarks.tool import End, Job
from rocelab.record import adapter
from rocelab.record.folder import RunFolder
from rocelab.record.frames import Frames
from synthetic_run import Synthetic

DATA = Path(__file__).parents[1] / "data"
OUTPUT = DATA / "perftest-25.01.0+0.80-send_bw-64-n1000.txt"
PLAN = """
[plan]
name = "adapters"
repetitions = 1
transports = ["hw-v2"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64]
iterations = 1000
"""


def irdma() -> Counters:
    """Return the counters by path; the recorded listing has `name: value`."""
    base = "/sys/class/infiniband/iwp3s0f0/ports/1/hw_counters"
    lines = (DATA / "irdma-hw_counters.txt").read_text().splitlines()
    return counters.parse("\n".join(f"{base}/{line.replace(': ', ':')}" for line in lines))


def mlx5() -> Counters:
    said = adapter.ethtool_statistics((DATA / "mlx5-ethtool-S-rdma.txt").read_text())
    return Counters({}, {}, adapter={f"ethtool.{name}": value for name, value in said.items()})


def efa() -> Counters:
    return counters.parse((DATA / "efa-hw_counters.txt").read_text())


DEVICES = {"irdma": irdma, "mlx5_core": mlx5, "efa": efa}
SAID = {
    "irdma": adapter.Moved(101959, 87399, 7224092),
    "mlx5_core": adapter.Moved(321535216, 439107945, 147370719852),
    "efa": adapter.Moved(11002381069, 1776383627, 84417311044934),
}


def run_folder(folder: Path, driver: str) -> Path:
    """What `rocelab run` leaves of one such cell, and the results made of it."""
    plan = plan_file.from_toml(PLAN, "adapters.toml")
    (cell,) = plan.cells()
    job = Job(cell.test, 64, 1000, 1, 14, 0, End(""), End(""))
    measured = perftest.parse(job, OUTPUT.read_text())
    one = Counters({}, {"tx_packets": 3}, adapter=dict(DEVICES[driver]().adapter))
    moved = {"n1": one, "n2": one}
    judged = prove(cell.transport, moved, Frames(), measured)
    assert judged.ok, judged.failures()
    run = RunFolder.create(folder, plan, {})
    meta = Synthetic(accelerator="native").meta()
    for node in meta["nodes"].values():
        node["adapter"] = {"device": "mlx5_0", "driver": driver, "active_mtu": 1024}
    run.write_meta({**meta, "plan": plan.to_dict(), "run": run.name, "cells": [cell.name]})
    step = {
        "size": 64,
        "path_mtu": 4096,
        "counters": {name: end.as_json() for name, end in moved.items()},
        "frames": dataclasses.asdict(Frames()),
        "proof": {
            "transport": "hw-v2",
            "ok": True,
            "checks": [check.__dict__ for check in judged.checks],
        },
    }
    into = run.begin(cell)
    (into / "64").mkdir()
    shutil.copy(OUTPUT, into / "64" / "client.out")
    record = {"cell": cell.name, "transport": "hw-v2", "status": "ok", "client": "n1"}
    run.commit(cell, {**record, "server": "n2", "error": None, "steps": [step]})
    results.rebuild(run.path)
    return run.path


def page(folder: Path) -> Element:
    return report_page.page(folder)


@pytest.mark.parametrize("driver", DEVICES)
def test_the_counters_of_each_are_in_the_report(tmp_path: Path, driver: str) -> None:
    folder = run_folder(tmp_path, driver)
    table = pl.read_parquet(folder / "results.parquet")
    assert set(table["driver"]) == {driver}
    [section] = page(folder).all("section", id="adapters")
    assert "no driver stages over hw-v2" in section.text
    sums, every = section.all("table")
    said = SAID[driver]
    assert [
        (
            row["node"],
            row["driver"],
            row["packets sent"],
            row["packets received"],
            row["bytes sent"],
        )
        for row in sums.table()
    ] == [
        (
            *(node, driver, units.integer(said.sent or 0), units.integer(said.received or 0)),
            units.integer(said.sent_bytes or 0),
        )
        for node in ("n1", "n2")
    ]
    shown = {row["counter"]: row["by"] for row in every.table() if row["node"] == "n1"}
    assert shown == {
        name: units.integer(value) for name, value in DEVICES[driver]().adapter.items() if value
    }


def test_absent_stages_are_explained_where_they_would_be(tmp_path: Path) -> None:
    tree = page(run_folder(tmp_path, "mlx5_core"))
    [stages] = tree.all("section", id="stages")
    assert not stages.all("table")
    assert "There are no driver stages over hw-v2" in stages.text
    [proof] = tree.all("section", id="proof")
    assert "No capture on a host sees packets that an adapter makes" in proof.text
    assert proof.all("table")[0].table()[0]["verdict"] == "proven"


def test_rxe_alone_has_nothing_of_it(tmp_path: Path) -> None:
    tree = page(Synthetic(tests=("write_bw",)).write(tmp_path / "run"))
    assert not tree.all("section", id="adapters")
    assert "no driver stages" not in tree.text
