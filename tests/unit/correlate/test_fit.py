# SPDX-License-Identifier: GPL-2.0-or-later
"""Fit, rest and intervals against numbers computed independently."""

from __future__ import annotations

import random

import pytest

from rocelab.correlate.fit import Point, fit, rest
from rocelab.correlate.fit_subjects import Value, subjects
from rocelab.plans.plan import ENOUGH_REPETITIONS


def line(repetitions: int, noise: float, seed: int = 1) -> list[Point]:
    dice = random.Random(seed)
    return [
        Point(size, repetition, 100.0 + size, 500.0 + 1.5 * (100.0 + size) + dice.gauss(0, noise))
        for repetition in range(1, repetitions + 1)
        for size in (64, 256, 1024, 4096)
    ]


def test_an_exact_line_is_found_exactly() -> None:
    found = fit(line(3, 0.0))
    assert found
    assert found.base.value == pytest.approx(500)
    assert found.factor.value == pytest.approx(1.5)
    assert found.r_squared == pytest.approx(1)
    assert (found.points, found.repetitions) == (12, 3)


def test_against_the_normal_equations() -> None:
    points = line(4, 90.0)
    count = len(points)
    sx = sum(p.stages for p in points)
    sy = sum(p.measured for p in points)
    sxx = sum(p.stages**2 for p in points)
    sxy = sum(p.stages * p.measured for p in points)
    slope = (count * sxy - sx * sy) / (count * sxx - sx * sx)
    found = fit(points)
    assert found
    assert found.factor.value == pytest.approx(slope)
    assert found.base.value == pytest.approx((sy - slope * sx) / count)
    # in simple regression R² is the square of the correlation
    syy = sum(p.measured**2 for p in points)
    r = (count * sxy - sx * sy) ** 2 / ((count * sxx - sx**2) * (count * syy - sy**2))
    assert found.r_squared == pytest.approx(r)


def test_intervals_need_enough_repetitions() -> None:
    few = fit(line(ENOUGH_REPETITIONS - 1, 50.0))
    assert few
    assert few.factor.low is None
    assert all(one.low is None for one in rest(line(ENOUGH_REPETITIONS - 1, 50.0)).values())
    many = fit(line(ENOUGH_REPETITIONS, 50.0))
    assert many
    assert many.factor.low is not None
    assert many.factor.high is not None
    assert many.factor.low < many.factor.value < many.factor.high
    assert many == fit(line(ENOUGH_REPETITIONS, 50.0)), (
        "the same points must give the same interval"
    )


def test_intervals_cover_the_truth_about_as_often_as_they_claim() -> None:
    held = 0
    for seed in range(12):
        found = fit(line(10, 80.0, seed))
        assert found
        assert found.factor.low is not None
        assert found.factor.high is not None
        held += found.factor.low <= 1.5 <= found.factor.high
    assert held >= 9, held  # the seeds are fixed, so the count is too


def test_an_undetermined_fit_is_none() -> None:
    assert fit([Point(64, 1, 5.0, 6.0), Point(128, 1, 7.0, 8.0)]) is None
    assert fit([Point(64, i, 5.0, 6.0 + i) for i in range(1, 6)]) is None


def values(metric: str, kind: str, measured: float) -> list[Value]:
    def one(node: str, name: str, kind: str, value: float) -> Value:
        return Value("tcg", "perftest", "t", "rxe-v2", 64, 1, node, name, kind, value)

    return [
        one("n1", metric, kind, measured),
        one("wire", "wire.payload_bytes", "roce", 6400.0),
        one("wire", "wire.data_frames", "roce", 100.0),
        one("wire", "wire.header_bytes", "roce", 74.0),
        one("n1", "stage.tx.copy.sum", "RDMA_WRITE", 3000.0),
        one("n2", "stage.rx.exec.sum", "RDMA_WRITE", 2000.0),
        one("n2", "stage.rx.queue.sum", "RDMA_WRITE", 50_000.0),
        one("n2", "stage.rx.reply.sum", "RDMA_WRITE", 90_000.0),
        one("n2", "stage.tx.copy.sum", "ACKNOWLEDGE", 70_000.0),
        one("n1", "stage.tx.copy.mean", "RDMA_WRITE", 30.0),
    ]


def test_stages_include_the_queue_for_a_latency_but_not_for_a_rate() -> None:
    (latency,) = subjects(values("latency.mean", "one_way_half_rtt", 900.0))
    (point,) = latency.points
    assert (latency.quantity, latency.kind) == ("latency", "one_way_half_rtt")
    assert (point.stages, point.measured) == (550.0, 900.0)
    assert latency.header_bytes == {64: 74.0}
    assert latency.rest()[64].value == 350.0
    (rate,) = subjects(values("message_rate", "one_way", 1e6))
    (point,) = rate.points
    assert rate.quantity == "inverse_bandwidth"
    assert (point.stages, point.measured) == (50.0, 1000.0)


def test_a_benchmark_without_stages_is_left_out() -> None:
    every = values("latency.mean", "one_way_half_rtt", 900.0)
    assert subjects(value for value in every if not value.metric.startswith("stage.rx")) == []
    assert subjects(value for value in every if value.metric != "latency.mean") == []
