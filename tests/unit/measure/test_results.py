# SPDX-License-Identifier: GPL-2.0-or-later
"""results.parquet from raw output: what CPU time is divided by."""

from __future__ import annotations

import json
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from rocelab.errors import MissingError
from rocelab.measure import results
from rocelab.record import layout, results_table

DATA = Path(__file__).parents[1] / "data"
NODES = ("n1", "n2")
WRITE_LAT = "perftest-25.01.0+0.80-write_lat-64-n20.txt"


def rxecpu() -> dict[str, Any]:
    """One CPU that worked 400 µs in the kernel for the benchmark."""
    return {
        "schema": "rocelab.rxecpu/1",
        "duration_ns": 1_000_000,
        "cpus": 1,
        "events": 1,
        "lost": 0,
        "late": 0,
        "rows": [
            {"cpu": 0, "context": "idle", "owner": "none", "ns": 600_000},
            {"cpu": 0, "context": "syscall", "owner": "benchmark", "ns": 400_000},
        ],
    }


def run(
    folder: Path,
    tool: str,
    test: str,
    transport: str,
    output: tuple[str, str],
    size: int = 64,
    iterations: int = 20,
) -> Path:
    """A run of one cell of one size, of which no packet was captured."""
    name = f"{tool}-{test}.{transport}.r01"
    step = folder / layout.CELLS / name / str(size)
    step.mkdir(parents=True)
    shutil.copy(DATA / output[0], step / output[1])
    for node in NODES:
        (step / f"rxecpu.{node}.json").write_text(json.dumps(rxecpu()), "utf-8")
    mpi = {"mpi": {"sweep": False}} if tool == "mpibench" else {}
    benchmark = {"tool": tool, "test": test, "sizes": [size], "iterations": iterations, **mpi}
    meta = {
        "schema": layout.RUN_SCHEMA,
        "status": "complete",
        "accelerator": "native",
        "plan": {
            "plan": {"name": "p", "repetitions": 1, "transports": [transport], "probes": []},
            "testbed": {"provider": "ssh"},
            "benchmark": [benchmark],
        },
        "nodes": {
            node: {"adapter": {"driver": "mlx5_core"}, "verbs": None, "nic": {"driver": "x"}}
            for node in NODES
        },
    }
    (folder / layout.RUN).write_text(json.dumps(meta), "utf-8")
    moved = {"rxe": {}, "netdev": {}, "adapter": {"hw.sent_pkts": 50, "hw.rcvd_pkts": 50}}
    cell = {
        "schema": layout.CELL_SCHEMA,
        "status": "ok",
        "client": "n1",
        "steps": [
            {
                "size": size,
                "sizes": [size],
                "path_mtu": None if mpi else 1024,
                "counters": dict.fromkeys(NODES, moved),
                "frames": dict.fromkeys(
                    ("roce_v1", "roce_v2", "tcp", "other", "roce_data", "roce_payload_bytes",
                     "tcp_data", "tcp_payload_bytes"),
                    0,
                ),
            }
        ],
    }  # fmt: skip
    (step.parent / layout.CELL).write_text(json.dumps(cell), "utf-8")
    return folder


@pytest.mark.parametrize("transport", ["hw-v1", "hw-v2", "ib"])
def test_an_adapter_s_messages_are_those_of_the_benchmark(tmp_path: Path, transport: str) -> None:
    """No capture sees them, but 20 iterations of a ping-pong are 40 messages of 64 bytes."""
    where = run(tmp_path, "perftest", "write_lat", transport, (WRITE_LAT, "client.out"))
    results.rebuild(where)
    table = results_table.load(where)

    def value(metric: str, kind: str) -> float:
        return float(table.filter(metric=metric, kind=kind, node="n1")["value"].item())

    assert value("benchmark.messages", "counter") == 40
    assert value("benchmark.path_mtu", "setting") == 1024
    assert value("cpu.per_message", "kernel") == 400_000 / 40
    assert value("cpu.per_mb", "kernel") == pytest.approx(400_000 / (40 * 64e-6))
    assert value("cpu.per_packet", "kernel") == 400_000 / 100
    assert value("cpu.syscall.benchmark", "per_message") == 10_000


def rxestat(machine: str, events: dict[str, Any] | None) -> dict[str, Any]:
    """What rxestat wrote of a node: 25 packets sent, 25 arrived, which do not count twice."""
    kinds = {"opcode_class": "RDMA_WRITE", "count": 25, "switched": 5}
    return {
        "schema": "rocelab.rxestat/1",
        "accelerator": "kvm",
        "kernel_events": events,
        "rows": [],
        "packets": [{**kinds, "event": event} for event in ("tx", "rx", "done")],
        "lost": 0,
        **({"machine": machine} if machine else {}),
    }


def cycles(folder: Path, document: dict[str, Any]) -> dict[tuple[str, str], float]:
    """The cycles of a run with these documents, by machine and kind."""
    where = run(folder, "perftest", "write_lat", "hw-v2", (WRITE_LAT, "client.out"))
    for node in NODES:
        path = where / layout.CELLS / "perftest-write_lat.hw-v2.r01" / "64"
        (path / f"rxestat.{node}.json").write_text(json.dumps(document), "utf-8")
    results.rebuild(where)
    rows = results_table.load(where).filter(metric="cycles.kernel")
    assert set(rows["unit"]) <= {"cycles"}
    return {(row["node"], row["kind"]): row["value"] for row in rows.iter_rows(named=True)}


COUNTED = {"event": "cycles", "count": 1_000_000, "counted_share": 1.0}


def test_cycles_are_of_a_machine(tmp_path: Path) -> None:
    """By messages and by packets; nodes that share a machine have them once."""
    apart = cycles(tmp_path / "apart", rxestat("", COUNTED))
    assert apart == {
        (node, kind): 1_000_000 / amount
        for node in NODES
        for kind, amount in (("counter", 1), ("per_message", 40), ("per_packet", 50))
    }
    shared = cycles(tmp_path / "shared", rxestat("n1+n2", COUNTED))
    assert shared == {
        ("n1+n2", kind): 1_000_000 / amount
        for kind, amount in (("counter", 1), ("per_message", 40), ("per_packet", 100))
    }


def test_cycles_of_one_more_message(tmp_path: Path) -> None:
    """800 round trips against 100; what both counts have in common is the start."""
    raw = (WRITE_LAT, "client.out")
    where = run(tmp_path, "pingpong", "latency", "hw-v2", raw, iterations=800)
    cell = where / layout.CELLS / "pingpong-latency.hw-v2.r01"
    eighth = cell / "64" / layout.EIGHTH_WATCHED
    eighth.mkdir()
    start, each = 5_000_000, 7_000
    for folder, count in ((cell / "64", 800), (eighth, 100)):
        said = {"schema": "rocelab.pingpong/1", "size": 64, "elapsed_ns": 9, "path_mtu": 1024}
        said |= {"sent": count, "received": count}
        (folder / "client.out").write_text(json.dumps(said), "utf-8")
        seen = rxestat("n1+n2", COUNTED | {"count": start + 2 * count * each})
        for node in NODES:
            (folder / f"rxestat.{node}.json").write_text(json.dumps(seen), "utf-8")
    record = json.loads((cell / layout.CELL).read_text())
    (step,) = record["steps"]
    step[layout.EIGHTH_WATCHED] = dict(step)
    (cell / layout.CELL).write_text(json.dumps(record), "utf-8")
    results.rebuild(where)
    rows = results_table.load(where).filter(metric="cycles.kernel", kind="marginal")
    assert rows["node"].item() == "n1+n2"
    assert rows["value"].item() == each


@pytest.mark.parametrize(("more_ns", "known"), [(10**9, False), (3 * 10**9, True)])
def test_work_in_ticks_tells_only_long_work(tmp_path: Path, more_ns: int, known: bool) -> None:
    """A reading may be off by two ticks, 20 ms."""
    raw = (WRITE_LAT, "client.out")
    where = run(tmp_path, "pingpong", "latency", "hw-v2", raw, iterations=800)
    cell = where / layout.CELLS / "pingpong-latency.hw-v2.r01"
    said = {"schema": "rocelab.pingpong/1", "size": 64, "elapsed_ns": 9, "path_mtu": 1024}
    (cell / "64" / "client.out").write_text(json.dumps(said | {"sent": 800, "received": 800}))
    record = json.loads((cell / layout.CELL).read_text())
    (step,) = record["steps"]
    for name, sent, work in (("eighth", 200, 0), ("half", 800, more_ns // 2)):
        step[name] = {"sent": sent, "work_ns": {"n1": work}, "work_step_ns": {"n1": 20_000_000}}
    step |= {"sent": 1600, "work_ns": {"n1": more_ns}}
    (cell / layout.CELL).write_text(json.dumps(record), "utf-8")
    results.rebuild(where)
    rows = results_table.load(where).filter(metric="cost.message", kind="marginal")
    assert rows["value"].to_list() == ([more_ns / 1400] if known else [])


@pytest.mark.parametrize(
    "without",
    [
        {"kernel_events": None},
        {"kernel_events": COUNTED | {"event": "cpu-clock"}},
        {"accelerator": "tcg"},
    ],
)
def test_no_cycles_are_none(tmp_path: Path, without: dict[str, Any]) -> None:
    """Neither zero, nor another event, nor what an emulated processor calls so."""
    assert cycles(tmp_path, rxestat("", COUNTED) | without) == {}


def test_mpi_messages_are_counted_with_their_warm_up(tmp_path: Path) -> None:
    """The recorded run: a check and 20 timed round trips, and what it warmed up with."""
    recorded = "mpibench-0.1.0-latency.json"
    document = json.loads((DATA / recorded).read_text())
    [row] = [row for row in document["results"] if row["size"] == 1024]
    where = run(tmp_path, "mpibench", "latency", "hw-v2", (recorded, "mpirun.out"), size=1024)
    step = where / layout.CELLS / "mpibench-latency.hw-v2.r01" / "1024"
    alone = json.dumps(document | {"results": [row]}, separators=(",", ":"))
    (step / "mpirun.out").write_text(alone, "utf-8")
    results.rebuild(where)
    table = results_table.load(where)
    done = 2 * (20 + 2 + 1)
    assert done > row["across"]["messages"]
    assert table.filter(metric="benchmark.messages")["value"].item() == done
    spent = table.filter(metric="cpu.per_message", kind="kernel", node="n1")["value"].item()
    assert spent == pytest.approx(400_000 / done)


def test_what_this_machine_lacks_is_not_a_damaged_cell(tmp_path: Path) -> None:
    """However many files can be open, nobody is told to remove a cell that is whole."""
    where = run(tmp_path, "perftest", "write_lat", "hw-v2", (WRITE_LAT, "client.out"))
    step = where / layout.CELLS / "perftest-write_lat.hw-v2.r01" / "64"
    for node in NODES:
        (step / f"rxestat.{node}.json").write_text(json.dumps(rxestat("", None)), "utf-8")
    results.rebuild(where)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lacking = set()
    for more in range(12):
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, hard))
        try:
            results.rebuild(where)
        except MissingError as error:
            lacking.add(error.what.partition(": ")[0])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(lacking) > 2, "the limit is met in several places"
