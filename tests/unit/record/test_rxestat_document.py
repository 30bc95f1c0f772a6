# SPDX-License-Identifier: GPL-2.0-or-later
"""Stage histograms: a recorded document of rxestat, merging, quantiles, hostile documents."""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab import stage_table
from rocelab.directory import Directory
from rocelab.errors import CellError
from rocelab.record import rxestat_document
from rocelab.record.histogram import Histogram, from_row, merge

REAL = json.loads(
    (Path(__file__).parents[1] / "data" / "rxestat-0.1-write_lat-64.json").read_text()
)
TIMES = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=200)


def bucketed(values: list[int]) -> Histogram:
    """Buckets of powers of two."""
    buckets = Counter((1 << v.bit_length()) - 1 for v in values)
    return Histogram(len(values), sum(values), min(values), max(values), buckets)


def test_a_real_document() -> None:
    stages = rxestat_document.parse(REAL)
    values = {(v.metric, v.kind): v for v in stages.values()}
    assert stages.lost == 0
    assert stages.packets["tx", "RDMA_WRITE"] == (300, 0)
    assert values["stage.tx.icrc.count", "RDMA_WRITE"].value == 300
    assert values["packets.rx", "ACKNOWLEDGE"].value == 300
    for metric, unit in (("stage.tx.bth.mean", "ns"), ("stage.rx.queue.p99", "ns")):
        assert values[metric, "RDMA_WRITE"].unit == unit
    # exactly the document's mean
    for row in REAL["rows"]:
        mean = stages.histograms[row["dir"], row["opcode_class"], row["stage"]].mean
        assert mean == pytest.approx(row["mean_ns"], abs=0.001)
    parts = [values[f"stage.tx.{s}.mean", "RDMA_WRITE"].value for s in stage_table.ENCAPSULATION]
    assert values["encapsulation.mean", "RDMA_WRITE"].value == pytest.approx(sum(parts))
    assert stages.on_the_way("RDMA_WRITE") == pytest.approx(
        sum(values[f"stage.tx.{s}.mean", "RDMA_WRITE"].value for s in stage_table.TX)
        + sum(
            values[f"stage.rx.{s}.mean", "RDMA_WRITE"].value
            for s in stage_table.DELIVERING
            if ("rx", "RDMA_WRITE", s) in stages.histograms
        )
    )
    assert "reply" not in stage_table.DELIVERING


def test_a_document_of_groups() -> None:
    """`rxestat --group`: what each group has is added up, whatever its name is."""
    whole = rxestat_document.parse(REAL)
    grouped = copy.deepcopy(REAL) | {"group_by": "cgroup", "groups": [], "qps_beyond": 0}
    for part in ("packets", "rows"):
        grouped[part] = [
            row | {"group": name} for name in ("/a", "-", "/\\x1b[31m") for row in REAL[part]
        ]
    stages = rxestat_document.parse(grouped)
    assert stages.packets == {
        key: (3 * n, 3 * switched) for key, (n, switched) in whole.packets.items()
    }
    for key, histogram in whole.histograms.items():
        three = stages.histograms[key]
        assert (three.count, three.sum) == (3 * histogram.count, 3 * histogram.sum)
        assert (three.min, three.max) == (histogram.min, histogram.max)
        assert three.quantile(0.5) == histogram.quantile(0.5)


def test_a_step_that_few_packets_have_counts_for_all() -> None:
    """Four packets of one message have one completion, a quarter per packet."""
    stages = rxestat_document.Stages(
        {("rx", "SEND", "cqe"): bucketed([100]), ("rx", "SEND", "exec"): bucketed([7] * 4)},
        {("done", "SEND"): (5, 1)},
        0,
        None,
    )
    assert stages.on_the_way("SEND") == 100 / 4 + 7


@given(TIMES, TIMES)
def test_merging_is_as_if_measured_together(a: list[int], b: list[int]) -> None:
    assert merge([bucketed(a), bucketed(b)]) == bucketed(a + b)


@given(TIMES, st.floats(0.01, 1))
def test_quantiles_are_bounds_and_never_beyond_the_maximum(values: list[int], share: float) -> None:
    histogram = bucketed(values)
    true = sorted(values)[max(1, math.ceil(round(share * len(values), 9))) - 1]
    assert true <= histogram.quantile(share) <= histogram.max
    assert histogram.quantile(0.5) <= histogram.quantile(0.99)
    assert histogram.min <= histogram.mean <= histogram.max + 1e-6


def test_a_stage_that_saw_nothing_is_absent() -> None:
    row = {"count": 0, "sum_ns": 0, "min_ns": 0, "max_ns": 0, "buckets": []}
    assert from_row(row) is None


def broken(change: Any) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(REAL)
    change(document)
    return document


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(schema="rocelab.rxestat/9"),
        lambda d: d.pop("rows"),
        lambda d: d.pop("lost"),
        lambda d: d["rows"][0].pop("sum_ns"),
        lambda d: d["rows"][0].update(count=1),
        lambda d: d["rows"][0].update(stage="../x"),
        lambda d: d["rows"][0].update(opcode_class="\x1b[31m"),
        lambda d: d["rows"][0].update(stage=7),
        lambda d: d["rows"][0].update(buckets=[[1]]),
        lambda d: d["rows"][0].update(buckets=None),
        lambda d: d["packets"][0].update(event=""),
        lambda d: d["packets"][0].update(count="many"),
        lambda d: d.update(rows=[None]),
        lambda d: d.update(kernel_events=[]),
        lambda d: d.update(accelerator="kvm", kernel_events={"event": "cycles"}),
        lambda d: d.update(accelerator="kvm", kernel_events={"event": "cycles", "count": "many"}),
        lambda d: d.update(accelerator="kvm", kernel_events={"event": "cycles", "count": -1}),
        lambda d: d.update(accelerator="kvm", kernel_events={"event": "cycles", "count": True}),
    ],
)
def test_other_documents_are_refused(change: Any) -> None:
    with pytest.raises(CellError):
        rxestat_document.parse(broken(change))


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "rxestat.n1.json"
    with Directory.open(tmp_path) as step:
        for content in ("", "[]", "{", "[" * 100_000):
            path.write_text(content)
            with pytest.raises(CellError):
                rxestat_document.read(step, "n1")
        for node in ("none", "/../n1", "n1/../../n1"):
            with pytest.raises(CellError):
                rxestat_document.read(step, node)
