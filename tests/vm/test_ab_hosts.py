# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab --inventory`: the driver of two SSH hosts is exchanged in turn, and comes back.

The hosts are emulated, so their times are no real ones, and the answer says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import injected
import pingpong_command
from command_line import rocelab
from hosts_compared import PLAN, state
from injected import Edit, costlier
from polling import wait_until
from requirements import missing
from rocelab import metrics, stage_table
from rocelab.errors import ExitCode, MissingError
from rocelab.record import results_table
from rocelab.testbed import artifacts, lease
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from vmlab import LINE

DELAY_NS = 2_000_000


def source(node: Node) -> str:
    """Which module is loaded; empty while none is."""
    return node.run(["cat", "/sys/module/rdma_rxe/srcversion"], check=False).stdout.strip()


@pytest.fixture
def words(foreign_hosts: Path, tmp_path: Path) -> list[str]:
    """The command up to its sides."""
    try:
        artifacts.driver(LINE, "delay")
    except MissingError as error:
        missing(error.action)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    where = ["--inventory", str(foreign_hosts), "--plan", str(plan), "--out", str(tmp_path)]
    return ["ab", *where]


DELAYED = (
    f"delay+parameter:delay_stage=tx.icrc+parameter:delay_ns={DELAY_NS}"
    "+sysctl:net.core.rmem_default=250000"
)


def slow_stages(run: Path) -> set[tuple[str, str, str]]:
    """Direction, stage and opcode of those whose cheapest packet takes as long as the delay.

    The mean says little: a busy machine does not always run the processor that waits. Nor does the
    cheapest of one: perftest asks for a completion of the last message only.
    """
    table = results_table.load(run).filter(pl.col("metric").str.starts_with("stage."))
    stage = pl.col("metric").str.replace(r"\.[a-z]+$", "").alias("stage")
    cheapest, counted = (
        table.filter(pl.col("metric").str.ends_with(f".{figure}")).with_columns(stage)
        for figure in ("min", "count")
    )
    several = counted.filter(pl.col("value") > 1)
    slow = cheapest.filter(pl.col("value") >= DELAY_NS)
    rows = slow.join(several, on=["stage", "kind", "node", "repetition", "size"], how="semi")
    parts = [
        (metrics.Stage.parse(row["metric"]), row["kind"]) for row in rows.iter_rows(named=True)
    ]
    return {
        (part.direction, part.stage, kind)
        for part, kind in parts
        if part and part.stage not in stage_table.APART  # which are no work
    }


def check_delay(document: dict[str, Any], kinds: int = 2) -> None:
    """It is in its stage, for SENDs and ACKs; and no emulated time is called a time."""
    delays = [
        stage["difference"]
        for stage in document["stages"]
        if (stage["direction"], stage["stage"]) == ("tx", "icrc")
    ]
    assert len(delays) == kinds
    assert all(each > 0.9 * DELAY_NS for each in delays)
    assert document["accelerator"] == "tcg"
    assert {stage["unit"] for stage in document["stages"]} == {"emulated ns"}


def check_answer(document: dict[str, Any], folder: Path) -> None:
    """One round of either side ran on the hosts, and is said to be too little."""
    check_delay(document)
    assert document["rounds"] == 1
    assert document["sentence"].startswith("1 round cannot tell")
    assert document["moved"] == 0
    (base,), (change,) = (folder.glob(f"*-{name}") for name in ("base", "change"))
    assert slow_stages(base) == set()
    assert slow_stages(change) == {("tx", "icrc", "SEND"), ("tx", "icrc", "ACKNOWLEDGE")}
    for number, run in enumerate((base, change)):
        assert json.loads((run / "run.json").read_text())["testbed"]["provider"] == "ssh"
        assert document[("base", "change")[number]]["side"] == ("delay", DELAYED)[number]


def test_a_delay_is_measured_and_the_driver_comes_back(
    testbed: QemuTestbed, words: list[str], tmp_path: Path
) -> None:
    """One round: found in its stage, and said to be too little."""
    before = state(testbed.nodes)
    done = rocelab(*words, "--rounds", "1", "--json", "delay", DELAYED, timeout=600)
    assert done.returncode == ExitCode.OK, done.stderr
    assert state(testbed.nodes) == before
    (folder,) = tmp_path.glob("*-ab")
    check_answer(json.loads(done.stdout), folder)


@pytest.mark.long
def test_a_command_of_the_plan(testbed: QemuTestbed, words: list[str], tmp_path: Path) -> None:
    """It is compared as a tool is, with permission only."""
    plan = tmp_path / "plan.toml"
    head = PLAN[: PLAN.index("[[benchmark]]")]
    plan.write_text(head + pingpong_command.BENCHMARK)
    before = state(testbed.nodes)
    sides = ("delay", DELAYED)
    refused = rocelab(*words, "--rounds", "1", *sides)
    assert refused.returncode == ExitCode.USAGE, refused.stderr
    assert "commands of its own" in refused.stderr
    done = rocelab(*words, "--rounds", "1", "--json", "--commands", *sides, timeout=600)
    assert done.returncode == ExitCode.OK, done.stderr
    assert state(testbed.nodes) == before
    # messages of four packets
    check_delay(json.loads(done.stdout), kinds=4)


def test_a_killed_comparison(testbed: QemuTestbed, words: list[str]) -> None:
    """SIGKILL while another driver is loaded: each host gets its own back."""
    before = state(testbed.nodes)
    own = [source(node) for node in testbed.nodes]
    argv = [sys.executable, "-m", "rocelab", *words, "--rounds", "9", "delay", DELAYED]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(
                "another driver is loaded",
                lambda: (
                    process.poll() is not None
                    or all(
                        source(node) not in ("", mine)
                        for node, mine in zip(testbed.nodes, own, strict=True)
                    )
                ),
                seconds=600,
            )
            assert process.poll() is None
        finally:
            process.kill()
    for node in testbed.nodes:
        wait_until(
            f"the lease on {node.name} ends",
            lambda node=node: node.run(("test", "-e", lease.FOLDER), check=False).returncode,  # type: ignore[misc]
            seconds=120,
        )
    assert state(testbed.nodes) == before


def test_a_driver_that_is_in_use(testbed: QemuTestbed, words: list[str]) -> None:
    """Nothing is exchanged while a program uses a device; the answer names it."""
    first = testbed.nodes[0]
    before = state(testbed.nodes)
    # not as a command of a run, which the lease would end
    pid = first.run(["sh", "-c", "ib_send_bw -d rxe0 >/dev/null 2>&1 & echo $!"]).stdout.strip()
    try:
        wait_until(
            "it has the device",
            lambda: first.run(["cat", "/sys/module/rdma_rxe/refcnt"]).stdout.strip() != "0",
            seconds=60,
        )
        done = rocelab(*words, "delay", DELAYED)
    finally:
        first.run(["kill", pid])
    assert done.returncode == ExitCode.TESTBED
    assert "rdma_rxe on alpha is in use" in done.stderr
    assert f"ib_send_bw (process {pid})" in done.stderr
    wait_until(
        "it has ended",
        lambda: first.run(["cat", "/sys/module/rdma_rxe/refcnt"]).stdout.strip() == "0",
        seconds=60,
    )
    assert state(testbed.nodes) == before


@pytest.mark.long
def test_enough_rounds(testbed: QemuTestbed, words: list[str]) -> None:
    """The stage with the delay moved, with an interval that excludes zero; what follows, little.

    An emulated processor that spins for 2 ms also delays what comes after, by some microseconds.
    """
    before = state(testbed.nodes)
    done = rocelab(*words, "--rounds", "10", "--json", "delay", DELAYED, timeout=3600)
    assert done.returncode == ExitCode.FINDINGS, done.stderr
    assert state(testbed.nodes) == before
    document = json.loads(done.stdout)
    check_delay(document)
    moved = [stage for stage in document["stages"] if stage["moved"]]
    delayed = [stage for stage in moved if (stage["direction"], stage["stage"]) == ("tx", "icrc")]
    assert sorted(stage["opcode"] for stage in delayed) == ["ACKNOWLEDGE", "SEND"]
    assert all(stage["difference"] < DELAY_NS / 20 for stage in moved if stage not in delayed)
    for stage in delayed:
        assert 0 < stage["interval"]["low"] <= stage["difference"] <= stage["interval"]["high"]
    assert "icrc of sent packets +" in document["sentence"]
    assert "emulated ns" in document["sentence"]


ICRC = ("tx", "icrc")


@pytest.mark.long
def test_the_first_patch_of_a_series(
    testbed: QemuTestbed, words: list[str], tmp_path: Path
) -> None:
    """The second of two patches is found, over three comparisons of ten pairs.

    Only what takes over ten times as long is beyond the threshold: no chance of emulated times is.
    """
    before = state(testbed.nodes)
    file, anchor, after = injected.STAGES[ICRC]
    wait = f"for (u64 end = ktime_get_ns() + {DELAY_NS}; ktime_get_ns() < end;) cpu_relax();"
    steps = [[costlier(ICRC, 1)], [Edit(file, anchor, wait, after)]]
    series = injected.write(tmp_path / "series", *steps)
    options = ("--bisect", "--threshold", "1000", "--rounds", "10", "--json")
    done = rocelab(*words, *options, "instrumented", str(series), timeout=7200)
    assert done.returncode == ExitCode.FINDINGS, done.stderr
    assert state(testbed.nodes) == before
    document = json.loads(done.stdout)
    assert document["first"] == "0002-Step.patch"
    assert document["change"]["side"] == f"{series}, 2 of 2"
    check_delay(document)
    # the base is measured again for each number of patches: its times are of those minutes
    assert len(list(tmp_path.glob("*-ab/*-base"))) == 3 * 10
