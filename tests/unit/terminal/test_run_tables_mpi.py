# SPDX-License-Identifier: GPL-2.0-or-later
"""An mpirun's tables: figures by size, packets of all sizes together."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
from rich.console import Console

from rocelab.plans import plan_file
from rocelab.record.folder import RunFolder
from rocelab.terminal import run_tables
from study_results import Line, table

PLAN = """
[plan]
name = "mpi"
transports = ["tcp", "rxe-v1"]

[[benchmark]]
tool = "mpibench"
test = "bw"
sizes = [1, 16384]
"""
OF_ALL = 0
"""Placeholder for null until the table is written."""


def shown(folder: Path, reads: float = 222.0) -> str:
    means = [
        Line("bw", "rxe-v1", f"{metric}.{what}", {OF_ALL: value}, kind, "ns")
        for kind, count, cost in (
            ("SEND", 111.0, 111.0),
            ("RDMA_READ_RESPONSE", reads, 222.0),
            ("ACKNOWLEDGE", 333.0, 333.0),
        )
        for metric in ("stage.tx.bth", "stage.rx.parse")
        for what, value in (("mean", cost), ("count", count))
    ]
    lines = [
        Line("bw", "tcp", "bandwidth", {1: 638.0, 16384: 13.8e6}),
        Line("bw", "rxe-v1", "bandwidth", {1: 454.0, 16384: 6.2e6}),
        Line("bw", "tcp", "wire.header_bytes", {OF_ALL: 66.0}, "tcp", "bytes", exact=True),
        Line("bw", "rxe-v1", "wire.header_bytes", {OF_ALL: 70.5}, "roce", "bytes", exact=True),
        *means,
    ]
    plan = plan_file.from_toml(PLAN, "mpi.toml")
    run = RunFolder.create(folder, plan, {})
    run.write_meta({"plan": plan.to_dict(), "accelerator": "native"})
    size = pl.when(pl.col("size") != OF_ALL).then("size")
    table(lines).with_columns(size=size).write_parquet(run.path / "results.parquet")
    screen = io.StringIO()
    run_tables.show(run.path, Console(width=80, file=screen))
    return screen.getvalue()


def test_small_values_keep_their_digits(tmp_path: Path) -> None:
    """A bandwidth may be tiny: 638 B/s must not be shown as 0.00 MB/s."""
    text = shown(tmp_path)
    assert max(map(len, text.splitlines())) <= 80
    rows = [line.split() for line in text.splitlines()]
    [one] = [row for row in rows if row[:4] == ["mpibench", "bw", "1", "tcp"]]
    assert one[4].startswith("0.00063")
    [many] = [row for row in rows if row[:2] == ["16384", "tcp"]]
    assert many[2] == "13.8"


def test_tools_with_a_test_of_one_name(tmp_path: Path) -> None:
    """Each row names its tool, and has only that tool's figures."""
    tools = ("mpibench", "omb", "imb", "skampi")
    text = '[plan]\nname = "mpi"\ntransports = ["tcp"]\n' + "".join(
        f'[[benchmark]]\ntool = "{tool}"\ntest = "latency"\nsizes = [8]\n' for tool in tools
    )
    plan = plan_file.from_toml(text, "mpi.toml")
    run = RunFolder.create(tmp_path, plan, {})
    run.write_meta({"plan": plan.to_dict(), "accelerator": "native"})
    table(
        [
            Line("latency", "tcp", "latency.mean", {8: 1000.0 * (at + 1)}, exact=True, tool=tool)
            for at, tool in enumerate(tools)
        ]
    ).write_parquet(run.path / "results.parquet")
    screen = io.StringIO()
    run_tables.show(run.path, Console(width=80, file=screen))
    rows = [line.split() for line in screen.getvalue().splitlines()]
    values = {row[0]: row[-1] for row in rows if row[1:2] == ["latency"]}
    assert {tool: float(value) for tool, value in values.items()} == {
        "mpibench": 1.0,
        "omb": 2.0,
        "imb": 3.0,
        "skampi": 4.0,
    }


def test_packets_of_all_sizes(tmp_path: Path) -> None:
    text = shown(tmp_path)
    assert max(map(len, text.splitlines())) <= 80
    rows = [line.split() for line in text.splitlines()]
    assert ["mpibench", "bw", "all", "66.0", "70.5"] in [
        [w for w in row if w[0] != "("] for row in rows
    ]
    assert "Inside the driver: mpibench bw over rxe-v1" in text
    [bth] = [row for row in rows if row[:2] == ["tx", "bth"]]
    # by packet class, without ACKs, which carry no message
    assert [round(float(value)) for value in bth[2:]] == [222, 111]


def test_packets_of_a_rare_class(tmp_path: Path) -> None:
    """UCX sends one RDMA WRITE to connect: an interrupt in it would be all of its cost."""
    text = shown(tmp_path, reads=4)
    assert "mean ns per SEND packet of all sizes" in text
    [bth] = [line.split() for line in text.splitlines() if line.startswith("tx bth ")]
    assert bth[2:] == ["111"]
    left_out = "Packets of kinds that are too rare for a cost are left out: 24 RDMA READ RESPONSE."
    assert left_out in " ".join(text.split())
