# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI between two nodes: the wire proves each transport, and each fallback is caught."""

from __future__ import annotations

import itertools
import json
import statistics
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from polling import wait_until
from rocelab.accelerators import is_emulated
from rocelab.errors import CellError, ExitCode
from rocelab.measure import runner
from rocelab.measure.cell import Outcome, measure
from rocelab.measure.mpi import launch, launch_check
from rocelab.measure.rig import Rig
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.mpi import recipe
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.catalog import TRANSPORTS
from rocelab.plans.plan import Benchmark, LinkPlan, MpiPlan, Plan
from rocelab.record import results_table
from rocelab.studies import library
from rocelab.studies.answers import answers
from rocelab.studies.samples import Results
from rocelab.studies.verdict import Verdict
from rocelab.testbed import artifacts
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node.prepare_node import (
    add_device,
    install_probes,
    offer_roce_v1,
    remove_device,
)
from rocelab.testbed.shaping import shape
from vmlab import LINE

HEAD = '[plan]\nname = "mpi"\nrepetitions = 1\nprobes = []\ntransports = ["rxe-v2"]\n'


@pytest.fixture
def rig(testbed: Testbed) -> Iterator[Rig]:
    """Both nodes with mpibench, and devices with GIDs of both RoCE versions."""
    nodes = testbed.nodes
    for node in nodes:
        install_probes(node, [artifacts.mpibench(LINE)])
    offer_roce_v1(nodes)
    yield Rig.on(testbed)
    for node in nodes:
        remove_device(node)
        add_device(node)


def bench(test: str, transport: str, mpi: str = "", sizes: str = "[4, 4096]") -> str:
    return f"""
[[benchmark]]
tool = "mpibench"
test = "{test}"
sizes = {sizes}
iterations = 10
timeout = 200
transports = {transport}
[benchmark.mpi]
{mpi}
"""


def only_cell(rig: Rig, text: str, folder: Path) -> Outcome:
    """Measure a plan's only cell."""
    (cell,) = plan_file.from_toml(HEAD + text, "vm.toml").cells()
    return measure(cell, rig, folder)


def studies(*, every: bool) -> Plan:
    """What gaiser2010's claims need and a collective, once; or a sample of every study."""

    def of(name: str, title: str, *transports: str) -> Benchmark:
        [benchmark] = [b for b in library.plan(name, quick=True).benchmarks if b.title == title]
        # each size is a start of mpirun, which is what costs
        sizes = (4, 4096) if title == "latency" else (4096,)
        return replace(benchmark, transports=transports, sizes=sizes, iterations=10, timeout=200)

    some = (
        of("gaiser2010", "latency", "tcp", "rxe-v1", "rxe-v2"),
        of("gaiser2010", "bw", "rxe-v1"),
        of("gaiser2010", "bibw", "rxe-v1"),
        of("zeng2021", "allreduce", "rxe-v2"),
    )
    others = (
        of("kaur2014", "alltoall-imb", "rxe-v1"),
        of("ismail2013", "bcast-few", "rxe-v1"),
        of("subramoni2009", "allgather", "rxe-v1"),
    )
    return replace(
        library.plan("gaiser2010", quick=True),
        repetitions=1,
        probes=(),
        benchmarks=(*some, *(others if every else ())),
    )


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_sample_of_the_studies(rig: Rig, tmp_path: Path, every: bool) -> None:
    """All that each test sent is on the wire, and nothing else; claims are judged."""
    plan = studies(every=every)
    outcome = runner.run(plan, rig.testbed, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    table = results_table.load(outcome.path)
    for benchmark in plan.benchmarks:
        metric = "bandwidth" if benchmark.test in ("bw", "bibw") else "latency.mean"
        rows = table.filter(test=benchmark.title, metric=metric)
        assert set(rows["transport"]) == set(benchmark.transports)
        assert set(rows["size"]) == set(benchmark.sizes)
        assert rows["value"].min() > 0  # type: ignore[operator]
    for transport, kind in (("rxe-v1", "roce_v1"), ("rxe-v2", "roce_v2")):
        rows = table.filter(pl.col("transport") == transport, pl.col("test") == "latency")
        frames = rows.filter(pl.col("metric") == "wire.frames", pl.col("kind") == kind)
        sent = rows.filter(pl.col("metric") == "driver.sent_pkts")
        assert frames["value"].sum() == sent["value"].sum() > 0
    answered = answers(library.study("gaiser2010"), Results(table))
    assert {a.claim.name: a.verdict for a in answered if a.verdict is not Verdict.UNTESTED} == {
        "soft-roce-locks-up": Verdict.DOES_NOT_HOLD
    }
    assert any(is_emulated(name) for name in table["accelerator"]) == any(
        "emulated" in answer.because for answer in answered
    )
    record = json.loads(
        (outcome.path / "cells/mpibench-allreduce.rxe-v2.r01/cell.json").read_text()
    )
    mpi = record["steps"][0]["mpi"]
    assert mpi["cvars"]["pml"] == "ucx"
    assert mpi["cvars"]["mpi_yield_when_idle"] is True
    assert "coll_tuned_allreduce_algorithm" in mpi["cvars"]
    assert not rig.nodes[0].run(("sh", "-c", "ls -d /tmp/rocelab-mpi.*"), check=False).stdout
    assert not rig.nodes[1].run(("pgrep", "-x", "prted|orted"), check=False).stdout


@pytest.mark.parametrize(
    ("transport", "injected", "told"),
    [
        ("rxe-v2", {"OMPI_MCA_pml": "ob1"}, "n1 sent_pkts is 0"),
        (
            "rxe-v2",
            {
                "UCX_TLS": "tcp,self",
                "UCX_NET_DEVICES": "data0",
                "OMPI_MCA_pml_ucx_tls": "any",
                "OMPI_MCA_pml_ucx_devices": "any",
            },
            "TCP payload bytes on the wire",
        ),
        ("tcp", {"OMPI_MCA_btl_tcp_if_include": "peer0"}, "TCP payload bytes on the wire"),
    ],
    ids=["openmpi-without-ucx", "ucx-over-tcp", "control-network"],
)
def test_a_fallback_is_an_error(
    rig: Rig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    transport: str,
    injected: dict[str, str],
    told: str,
) -> None:
    """mpirun succeeds with plausible numbers, but the wire disproves the transport."""
    good = recipe.for_node
    monkeypatch.setattr(
        recipe, "for_node", lambda *args, **words: {**good(*args, **words), **injected}
    )
    outcome = only_cell(rig, bench("latency", f'["{transport}"]'), tmp_path)
    assert outcome.record["error"] is not None, outcome.record["steps"]
    assert outcome.record["error"]["kind"] == "proof", outcome.record["error"]
    assert told in outcome.record["error"]["what"]


def test_killed_ranks_leave_nothing(rig: Rig) -> None:
    """Two on each node, with their shared memory, and mpirun with its daemon."""
    mpi = MpiPlan(
        ranks=2 * len(rig.nodes),
        ranks_per_node=2,
        yield_when_idle=True,
        method="osu",
        window=1,
        sweep=True,
        mca=(),
    )
    settings = [
        recipe.for_node(TRANSPORTS["tcp"], Place(node.name, node.link.netdev), one_machine=False)
        for node in rig.nodes
    ]
    files = ("sh", "-c", "ls -A /tmp /dev/shm")
    before = [node.run(files).stdout for node in rig.nodes]
    endless = ("mpibench", "--iterations", "1000000000", "--sizes", "4", "allreduce")
    with launch.prepare(rig.nodes, settings) as folder, ThreadPoolExecutor(1) as pool:
        job = pool.submit(
            launch.run,
            endless,
            mpi,
            rig.nodes,
            folder,
            control=rig.testbed.control,
            timeout=300,
            launch_seconds=200,
        )
        segments = f"ls {launch.memory(folder)} /dev/shm | grep -q segment"
        for node in rig.nodes:
            wait_until(
                f"shared memory on {node.name}",
                lambda node=node: not node.run(("sh", "-c", segments), check=False).returncode,  # type: ignore[misc]
            )
        for node in rig.nodes:
            killed = "mpibench|prterun|prted|mpirun|orted"
            node.run(("pkill", "-KILL", "-x", killed), check=False)
        with pytest.raises(CellError):
            job.result()
    assert [node.run(files).stdout for node in rig.nodes] == before


def test_both_ranks_on_one_node_are_an_error(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Driver loopback increments the counters, but the wire stays empty."""
    monkeypatch.setattr(
        recipe, "mpirun", lambda _mpi, _nodes: ("mpirun", "--host", "n1:2", "-n", "2")
    )
    monkeypatch.setattr("rocelab.measure.mpi.launch.machines", lambda nodes: [nodes[0]])
    outcome = only_cell(rig, bench("latency", '["rxe-v2"]'), tmp_path)
    assert outcome.record["error"] is not None
    assert outcome.record["error"]["kind"] == "proof", outcome.record["error"]


def test_why_messages_differ(rig: Rig, tmp_path: Path) -> None:
    """By mpibench's own times of each, without the check before them and the warm-up."""
    text = bench("latency", '["rxe-v2"]', "sweep = false", "[64]").replace("= 10\n", "= 100\n")
    (cell,) = plan_file.from_toml(HEAD + text, "vm.toml").cells()
    folder = tmp_path / cell.name
    folder.mkdir()
    outcome = measure(cell, rig, folder, observe=["rxedump"])
    assert outcome.error is None, outcome.record
    (row,) = json.loads((folder / "64/mpirun.out").read_text())["results"]
    assert len(row["each_ns"]) == 99
    words = (sys.executable, "-m", "rocelab", "join", "--json", str(folder))
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    (place,) = json.loads(done.stdout)["places"]
    (varied,) = place["variations"]
    assert varied["by"] == "mpibench"
    assert varied["round_trips"] <= 99
    assert sum(part["share"] for part in varied["parts"]) == pytest.approx(1)


def messages(path: Path, size: int) -> list[tuple[float, bytes]]:
    """(seconds, source address) of TCP frames that carry at least so much, from a classic pcap."""
    data = path.read_bytes()
    sent, offset = [], 24
    while offset < len(data):
        seconds, micros, captured, _ = struct.unpack_from("<IIII", data, offset)
        frame = data[offset + 16 : offset + 16 + captured]
        offset += 16 + captured
        if frame[12:14] == b"\x08\x00" and frame[23] == 6:
            total = struct.unpack_from("!H", frame, 16)[0]
            if total - 20 - (frame[46] >> 4) * 4 >= size:
                sent.append((seconds + micros * 1e-6, frame[26:30]))
    return sent


def test_a_injected_delay_is_in_the_latency_and_on_the_wire(rig: Rig, tmp_path: Path) -> None:
    """20 ms at the second node (1 ms is less than emulation's own noise): every answer is that
    late in the capture, and half of a round trip that the capture saw is what mpibench says."""
    with shape([rig.nodes[1]], LinkPlan(delay_us=20_000)):
        outcome = only_cell(rig, bench("latency", '["tcp"]', sizes="[1024]"), tmp_path)
    assert outcome.error is None, outcome.record
    (folder,) = tmp_path.iterdir()
    (row,) = json.loads((folder / "mpirun.out").read_text())["results"]
    seen = messages(folder / "wire.pcap", 1024)
    first, second = bytes((10, 44, 0, 1)), bytes((10, 44, 0, 2))
    answers = [
        later - sooner
        for (sooner, one), (later, other) in itertools.pairwise(seen)
        if (one, other) == (first, second)
    ]
    assert min(answers) >= 0.020
    asked = [time for time, source in seen if source == first][-row["iterations"] :]
    rounds = [b - a for a, b in itertools.pairwise(asked)]
    assert row["latency_ns"] == pytest.approx(statistics.mean(rounds) / 2 * 1e9, rel=0.25)


def test_the_doctor_finds_what_is_wrong(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A healthy pair passes; a different MTU, an invalid GID and a missing device are named."""
    n1, n2 = rig.nodes
    checks = {check.name: check for check in launch_check.launch_checks(rig, TRANSPORTS["rxe-v2"])}
    for check in checks.values():
        assert check.run()
    n2.run(("ip", "link", "set", n2.link.netdev, "mtu", "1500"))
    try:
        with pytest.raises(CellError, match="the MTUs of the data interfaces differ"):
            checks["MTU"].run()
    finally:
        n2.run(("ip", "link", "set", n2.link.netdev, "mtu", str(n2.link.mtu)))
    n1.run(("ip", "addr", "add", "172.31.0.2/24", "dev", "peer0"))
    try:
        with pytest.raises(CellError, match="share the control address"):
            checks["control network"].run()
    finally:
        n1.run(("ip", "addr", "del", "172.31.0.2/24", "dev", "peer0"))
    good = recipe.for_node
    monkeypatch.setattr(
        recipe,
        "for_node",
        lambda *args, **words: {**good(*args, **words), "UCX_NET_DEVICES": "rxe7:1"},
    )
    with pytest.raises(CellError) as caught:
        checks["exchange"].run()
    assert "UCX_NET_DEVICES" in caught.value.action
