# SPDX-License-Identifier: GPL-2.0-or-later
"""Invented run folders in the documented format, for tests of their readers.

All numbers come from a seed. None was measured, and none may leave the tests.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rocelab import stage_table

_BASE = {
    "wqe": 250, "alloc": 1000, "bth": 160, "route": 190, "net": 390, "copy": 580, "icrc": 1100,
    "xmit": 780, "parse": 740, "queue": 9000, "exec": 1300, "cqe": 400, "reply": 4200,
}  # fmt: skip
_PER_BYTE = {"alloc": 0.35, "copy": 0.38, "icrc": 0.39}
_HEADERS = {"rxe-v1": 82, "rxe-v2": 74, "tcp": 66}
_CLASSES = {
    "write_lat": "RDMA_WRITE",
    "write_bw": "RDMA_WRITE",
    "send_lat": "SEND",
    "read_lat": "RDMA_READ_RESPONSE",
}
TYPICAL, ATYPICAL = 0.9, 7
"""What a typical packet takes of the mean, and how many packets of a stage are not typical."""
_TCP_PROGRAMS = {"lat": "qperf tcp_lat", "bw": "qperf tcp_bw"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Synthetic:
    """What to make up. `failing` are names of cells that end as errors."""

    name: str = "demo"
    transports: tuple[str, ...] = ("tcp", "rxe-v2")
    tests: tuple[str, ...] = ("write_lat", "read_lat", "write_bw")
    sizes: tuple[int, ...] = (2, 64, 1024, 4096)
    repetitions: int = 3
    accelerator: str = "tcg"
    seed: int = 1
    failing: tuple[str, ...] = ()
    status: str = "complete"
    tool: str = "perftest"
    traced: bool = True
    """rxedump ran: single packets are in the results."""
    timed: bool = False
    """rxecpu ran: CPU time is in the results."""
    typical: bool = False
    """rxestat knew the sums of buckets: typical packets are in the results."""
    node_names: tuple[str, str] = ("n1", "n2")

    @property
    def run(self) -> str:
        """Name of the run folder."""
        return f"20261121T031500Z-{self.name}"

    def cells(self) -> Iterator[tuple[str, str, str, int]]:
        """Name, test, transport and repetition of every cell, in order."""
        for repetition in range(1, self.repetitions + 1):
            for test in self.tests:
                for transport in self.transports:
                    if transport == "tcp" and test.startswith("read"):
                        continue
                    name = f"{self.tool}-{test}.{transport}.r{repetition:02d}"
                    yield name, test, transport, repetition

    def write(self, folder: Path) -> Path:
        """Write the run folder; return it."""
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "run.json", self.meta())
        rows: list[Row] = []
        for name, test, transport, repetition in self.cells():
            ok = name not in self.failing
            cell = folder / "cells" / name
            cell.mkdir(parents=True, exist_ok=True)
            _write(cell / "cell.json", self.cell(name, test, transport, repetition, ok))
            if ok:
                rows += self.rows(test, transport, repetition)
        schema = {
            "run": pl.String, "tool": pl.String, "test": pl.String, "transport": pl.String,
            "repetition": pl.UInt32, "size": pl.UInt64, "node": pl.String, "metric": pl.String,
            "kind": pl.String, "value": pl.Float64, "unit": pl.String, "accelerator": pl.String,
            "driver": pl.String, "program": pl.String,
        }  # fmt: skip
        pl.DataFrame(rows, schema=schema).write_parquet(folder / "results.parquet")
        return folder

    def meta(self) -> Row:
        """Content of run.json."""
        return {
            "schema": "rocelab.run/1",
            "run": self.run,
            "rocelab": "0.1.0",
            "status": self.status,
            "reason": "",
            "started": "2026-11-21T03:15:00Z",
            "ended": "2026-11-21T03:19:42Z",
            "accelerator": self.accelerator,
            "plan": {
                "plan": {
                    "name": self.name,
                    "repetitions": self.repetitions,
                    "seed": self.seed,
                    "transports": list(self.transports),
                    "probes": ["rxestat"],
                },
                "testbed": {"provider": "qemu", "line": "6.12", "mtu": 4200},
                "benchmark": [
                    {"tool": self.tool, "test": test, "sizes": list(self.sizes), "iterations": 1000}
                    for test in self.tests
                ],
            },
            "cells": [name for name, *_ in self.cells()],
            "testbed": {"provider": "qemu", "qemu": "7.2.22"},
            "nodes": {
                name: {
                    "kernel": "6.12.117-amd64 #1 SMP SYNTHETIC",
                    "cpu": {"model": "QEMU Virtual CPU (synthetic)", "count": 1},
                    "driver": {
                        "version": "rocelab-0123456789ab",
                        "srcversion": "0" * 24,
                        "path": "/lib/modules/6.12.117-amd64/updates/rdma_rxe.ko",
                    },
                    "verbs": {"device": "rxe0", "port": 1},
                    "nic": {
                        "netdev": "data0",
                        "driver": "virtio_net",
                        "mtu": 4200,
                        "ipv4": f"10.77.0.{position}",
                        "mac": f"52:54:00:77:00:0{position}",
                        "offloads": {"tcp-segmentation-offload": True},
                    },
                    "sysctls": {"net.core.rmem_max": "212992"},
                    "crc32_drivers": ["crc32-pclmul", "crc32-generic"],
                    "packages": {"perftest": "24.10.0-1", "qperf": "0.4.11-5"},
                }
                for position, name in enumerate(self.node_names, 1)
            },
        }

    def cell(self, name: str, test: str, transport: str, repetition: int, ok: bool) -> Row:
        """Content of a cell.json."""
        rxe = transport != "tcp"
        packets = 2500
        error = {
            "what": "the capture holds 2 RoCE v2 frames fewer than the driver sent",
            "cause": "packets took a way that the wire never saw",
            "action": "look at wire.pcap of this cell",
            "size": self.sizes[-1],
            "kind": "proof",
        }
        steps = []
        for size in self.sizes:
            frames = packets - (0 if ok or size != self.sizes[-1] else 2)
            checks = (
                [("RoCE v2 frames on the wire", str(packets), frames)]
                if rxe
                else [("sum of sent_pkts", "0", 0), ("RoCE frames on the wire", "0", 0)]
            )
            steps.append(
                {
                    "size": size,
                    "counters": {
                        node: {
                            "rxe": {
                                "sent_pkts": packets // 2 if rxe else 0,
                                "rcvd_pkts": packets // 2 if rxe else 0,
                            },
                            "netdev": {},
                        }
                        for node in self.node_names
                    },
                    "frames": {
                        "roce_v1": 0,
                        "roce_v2": frames if rxe else 0,
                        "tcp": 24 if rxe else packets,
                    },
                    "proof": {
                        "transport": transport,
                        "ok": ok,
                        "checks": [
                            {"check": c, "expected": e, "found": f, "ok": str(f) == e}
                            for c, e, f in checks
                        ],
                    },
                }
            )
        return {
            "schema": "rocelab.cell/1",
            "cell": name,
            "tool": self.tool,
            "test": test,
            "transport": transport,
            "repetition": repetition,
            "program": self.program(test, transport),
            "status": "ok" if ok else "error",
            "error": None if ok else error,
            "client": self.node_names[0],
            "server": self.node_names[1],
            "steps": steps,
        }

    def program(self, test: str, transport: str) -> str:
        """What measures `test` over `transport`."""
        return _TCP_PROGRAMS[test[-3:].strip("_")] if transport == "tcp" else f"ib_{test}"

    def rows(self, test: str, transport: str, repetition: int) -> Iterator[Row]:
        """Rows of results.parquet for one cell."""
        for size in self.sizes:
            dice = random.Random(f"{self.seed} {test} {transport} {repetition} {size}")
            base = {
                "run": self.run,
                "tool": self.tool,
                "test": test,
                "transport": transport,
                "repetition": repetition,
                "size": size,
                "accelerator": self.accelerator,
                "driver": "virtio_net" if transport == "tcp" else "rdma_rxe rocelab-0123456789ab",
                "program": self.program(test, transport),
            }
            for node, metric, kind, value, unit in self._values(test, transport, size, dice):
                yield base | {
                    "node": node, "metric": metric, "kind": kind, "value": value, "unit": unit,
                }  # fmt: skip

    def _join_values(
        self, test: str, size: int, dice: random.Random
    ) -> Iterator[tuple[str, str, str, float, str]]:
        """What a join of capture and traces gives: one message, and the shares."""
        client, server = self.node_names
        kind = "median_message"
        for way in ("tx", "rx"):
            yield "wire", f"join.{way}.matched", "counter", 1998.0, "1"
            yield "wire", f"join.{way}.records", "counter", 2000.0, "1"
        yield "wire", "join.tx.before_device", "counter", 2.0, "1"
        yield "wire", "join.frames", "counter", 1998.0, "1"
        yield "wire", "join.unexplained", "counter", 0.0, "1"
        yield "wire", "life.of", kind, 900.0, "1"
        lengths = {}
        for place, node in (
            ("tx", client), ("rx", server), ("answer_tx", server), ("answer_rx", client),
        ):  # fmt: skip
            stages = stage_table.BY_DIRECTION[place[-2:]]
            lengths[place] = 0.0
            for stage in (*stages, "gap"):
                value = _BASE.get(stage, 300) * dice.uniform(0.9, 1.1)
                lengths[place] += value
                yield node, f"life.{place}.{stage}", kind, value, "ns"
        sides = (20_000 * dice.uniform(0.9, 1.2), 30_000 * dice.uniform(0.9, 1.2))
        responder = lengths["rx"] + lengths["answer_tx"] - 3_000
        spans = {
            "responder": responder,
            "responder_side": sides[1],
            "wire": responder + sides[1],
            "requester_side": sides[0],
            "requester": responder + sum(sides) + lengths["tx"] + lengths["answer_rx"],
            "between": 700.0,
            "on_the_way": 21_000.0,
        }
        for name, value in spans.items():
            yield client, f"life.span.{name}", kind, value, "ns"

    def _cpu_values(
        self, transport: str, dice: random.Random
    ) -> Iterator[tuple[str, str, str, float, str]]:
        owner = "network" if transport == "tcp" else "rxe"
        for node in self.node_names:
            parts = {
                "user.benchmark": 9_000.0,
                "syscall.benchmark": 2_500.0,
                "fault.benchmark": 300.0,
                f"{'syscall' if owner == 'network' else 'kthread'}.{owner}": 6_000.0,
                f"softirq.{owner}": 4_000.0,
                "softirq.network": 1_200.0,
                "hardirq.network": 700.0,
                "user.other": 800.0,
            }
            for name, base in parts.items():
                ns = base * dice.uniform(0.9, 1.1)
                yield node, f"cpu.{name}", "per_message", ns, "ns"
                yield node, f"cpu.{name}", "time", ns * 1000, "ns"
            yield node, "cpu.per_packet", "kernel", 5_000.0 * dice.uniform(0.9, 1.1), "ns"
            yield node, "cpu.per_message", "kernel", 11_000.0 * dice.uniform(0.9, 1.1), "ns"
            yield node, "cpu.per_message", "communication", 30_000.0 * dice.uniform(0.9, 1.1), "ns"
            yield node, "cpu.utilization", "per_core", 0.7, "1"

    def _values(
        self, test: str, transport: str, size: int, dice: random.Random
    ) -> Iterator[tuple[str, str, str, float, str]]:
        client = self.node_names[0]
        factor = {"tcp": 1.0, "rxe-v2": 1.9, "rxe-v1": 1.75}.get(transport, 1.4)
        latency = (120_000 + 14 * size) * factor * dice.uniform(0.93, 1.12)
        if test.endswith("_lat"):
            kind = "round_trip" if test.startswith("read") else "one_way_half_rtt"
            latency *= 2 if kind == "round_trip" else 1
            yield client, "latency.mean", kind, latency, "ns"
            if transport != "tcp":
                yield client, "latency.p50", kind, latency * 0.97, "ns"
                yield client, "latency.p99", kind, latency * 1.8, "ns"
        else:
            rate = size / latency * 24e9
            yield client, "bandwidth", "one_way", rate, "bytes/s"
            yield client, "message_rate", "one_way", rate / size, "1/s"
        protocol = "tcp" if transport == "tcp" else "roce"
        frames = 1000 * max(1, -(-size // 4096))
        yield "wire", "wire.header_bytes", protocol, float(_HEADERS.get(transport, 70)), "bytes"
        yield "wire", "wire.data_frames", protocol, float(frames), "1"
        yield "wire", "wire.payload_bytes", protocol, float(1000 * size), "bytes"
        if self.timed:
            yield from self._cpu_values(transport, dice)
        if transport == "tcp":
            return
        for node in self.node_names:
            yield node, "probe.lost", "counter", 0.0, "1"
            yield node, "probe.clock", "calibration", 44.0, "ns"
            for event in ("tx", "rx", "done"):
                yield node, f"packets.{event}", _CLASSES[test], 1003.0, "1"
                yield node, f"packets.{event}.switched", _CLASSES[test], 3.0, "1"
        total = 0.0
        for kind in (_CLASSES[test], "ACKNOWLEDGE"):
            payload = size if kind != "ACKNOWLEDGE" else 0
            for node in self.node_names:
                for direction, stages in stage_table.BY_DIRECTION.items():
                    means = {
                        stage: (_BASE[stage] + _PER_BYTE.get(stage, 0) * payload)
                        * dice.uniform(0.98, 1.03)
                        for stage in stages
                    }
                    if kind == "ACKNOWLEDGE":
                        means.pop("wqe", None)
                        means.pop("cqe", None)
                    for stage, mean in means.items():
                        count = 250 if stage == "cqe" else 1000
                        name = f"stage.{direction}.{stage}"
                        yield node, f"{name}.mean", kind, mean, "ns"
                        yield node, f"{name}.count", kind, float(count), "1"
                        yield node, f"{name}.sum", kind, mean * count, "ns"
                        yield node, f"{name}.p50", kind, mean * 0.9, "ns"
                        yield node, f"{name}.p99", kind, mean * 4, "ns"
                        if self.typical:
                            yield node, f"{name}.typical", kind, mean * TYPICAL, "ns"
                            yield node, f"{name}.atypical", kind, float(ATYPICAL), "1"
                    parts = (
                        ("bth", "route", "net", "icrc") if direction == "tx" else ("parse", "icrc")
                    )
                    side = "encapsulation" if direction == "tx" else "decapsulation"
                    capsule = sum(means[part] for part in parts)
                    yield node, f"{side}.mean", kind, capsule, "ns"
                    if self.typical:
                        yield node, f"{side}.typical", kind, capsule * TYPICAL, "ns"
                    if kind != "ACKNOWLEDGE" and (direction == "tx") == (node == client):
                        total += sum(means.values())
        if self.traced and size <= 4096:
            yield from self._join_values(test, size, dice)
        if test.endswith("_lat") and not test.startswith("read") and size <= 4096:
            half = "one_way_half_rtt"
            yield client, "coverage.total", half, latency, "ns"
            yield client, "coverage.stages", half, total, "ns"
            yield client, "coverage.outside", half, latency - total, "ns"


def _write(path: Path, content: Row) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
