# SPDX-License-Identifier: GPL-2.0-or-later
"""rxestat on a node, for tests: run it around something, and look into its documents."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rocelab import stage_table
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE

COUNTERS = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters"
TX_STAGES = frozenset(stage_table.TX)

Document = dict[str, Any]


def counter(node: Node, name: str) -> int:
    """One of the driver's counters."""
    return int(node.run(["cat", f"{COUNTERS}/{name}"]).stdout)


class Watch:
    """rxestat on a node, with every stage, and the driver's counters around it."""

    def __init__(self, node: Node, *options: str, xmit: bool = True) -> None:
        self.node = node
        self.before = {name: counter(node, name) for name in ("sent_pkts", "rcvd_pkts")}
        words = ["rxestat", "--json", "--node", node.name, *options, *["--xmit"] * xmit]
        self.process = node.start(words)
        self.process.wait_for_line("rxestat: ready", timeout=120)

    def stop(self) -> Document:
        """End it; returns the document. `moved` is how far the counters went."""
        self.process.interrupt()
        done = self.process.wait(timeout=60)
        assert done.returncode == 0, done.stderr
        self.moved = {
            name: counter(self.node, name) - before for name, before in self.before.items()
        }
        document: Document = json.loads(done.stdout)
        return document


@contextmanager
def watching(*nodes: Node, options: tuple[str, ...] = ()) -> Iterator[list[Watch]]:
    """rxestat on every node while the context lasts; the caller stops them."""
    watches = [Watch(node, *options) for node in nodes]
    try:
        yield watches
    finally:
        for watch in watches:
            watch.process.kill()


def packets(document: Document, event: str) -> Counter[str]:
    """Packets of an event by opcode class, those whose task was switched out included."""
    counts: Counter[str] = Counter()
    for row in document["packets"]:
        if row["event"] == event:
            counts[row["opcode_class"]] += row["count"]
    return counts


def by_group(document: Document, event: str) -> dict[str, Counter[str]]:
    """The same by the groups of `--group`."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in document["packets"]:
        if row["event"] == event:
            counts[row["group"]][row["opcode_class"]] += row["count"]
    return counts


def count_switched(document: Document, event: str) -> int:
    """Packets of an event that are in no histogram."""
    return sum(row["switched"] for row in document["packets"] if row["event"] == event)


def stage_counts(document: Document, direction: str) -> Counter[str]:
    """Packets in the histograms of each stage."""
    counts: Counter[str] = Counter()
    for row in document["rows"]:
        if row["dir"] == direction:
            counts[row["stage"]] += row["count"]
    return counts


def slept(document: Document) -> Counter[tuple[str, str]]:
    """Packets by event and opcode class whose task slept in on-demand paging."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in document["packets"]:
        assert row["slept"] <= row["switched"] <= row["count"]
        counts[row["event"], row["opcode_class"]] += row["slept"]
    return +counts


def check_rows(document: Document, *, sleeps: bool = False) -> None:
    """What must hold of any document; only on-demand paging lets tasks sleep."""
    assert bool(slept(document)) == sleeps
    assert document["schema"] == "rocelab.rxestat/1"
    assert document["lost"] == 0
    assert document["driver"]["kind"] == "instrumented"
    assert document["clock_ns"] > 0
    assert all(document["probe_ns"][program] > 0 for program in ("tx", "rx"))
    for row in document["rows"]:
        assert row["stage"] in stage_table.BY_DIRECTION[row["dir"]]
        assert row["count"] == sum(count for _, count in row["buckets"]) > 0
        edges = [upper for upper, _ in row["buckets"]]
        assert edges == sorted(set(edges))
        assert row["min_ns"] < edges[0]
        assert row["max_ns"] < edges[-1]
        assert row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] <= row["max_ns"]
        assert row["p99_ns"] <= row["p999_ns"] <= row["p9999_ns"] <= row["max_ns"]
        assert row["count"] * row["min_ns"] <= row["sum_ns"] <= row["count"] * row["max_ns"]
        assert row["mean_ns"] == pytest.approx(row["sum_ns"] / row["count"], abs=0.001)
        summed = [(upper, count) for upper, count in row["buckets"] if upper <= 65536]
        for (upper, count), total in zip(summed, row["bucket_sums_ns"], strict=True):
            # an eighth wide, or 4 ns
            assert min(upper * 8 / 9, upper - 4) * count <= total < upper * count
        if len(summed) == len(row["buckets"]):
            assert sum(row["bucket_sums_ns"]) == row["sum_ns"]
        assert row["netted_mean_ns"] == pytest.approx(
            row["mean_ns"] - document["clock_ns"], abs=0.002
        )
