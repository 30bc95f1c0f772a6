# SPDX-License-Identifier: GPL-2.0-or-later
"""Fits of the rest, and intervals, against numbers computed independently and made-up truths."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

import pytest

from rocelab.correlate.fit import FEWEST_SIZES, Fit, Point, Regime, fits, rest
from rocelab.correlate.fit_subjects import Value, subjects
from rocelab.plans.plan import ENOUGH_REPETITIONS

MTU = 1024
ONE = (2, 8, 64, 256, 512, 1024)
SEVERAL = (2048, 4096, 16384, 65536, 262144)


def packets(size: int) -> int:
    return max(1, -(-size // MTU))


def made(
    of: Callable[[int, random.Random], float],
    *,
    repetitions: int = 10,
    noise: float = 0.0,
    seed: int = 1,
    sizes: tuple[int, ...] = ONE + SEVERAL,
) -> list[Point]:
    """Points whose rest is `of(size)`; stages grow with the bytes, noise with what is measured."""
    dice = random.Random(seed)
    points = []
    for repetition in range(1, repetitions + 1):
        for size in sizes:
            stages = 3000.0 * packets(size) + 0.4 * size
            measured = (stages + of(size, dice)) * dice.gauss(1, noise)
            points.append(
                Point(
                    size,
                    repetition,
                    measured,
                    stages,
                    Regime.ONE if size <= MTU else Regime.SEVERAL,
                    {"bytes": float(size), "packets": float(packets(size))},
                )
            )
    return points


def line(points: list[Point], regime: Regime, amount: str = "bytes") -> Fit:
    [fit] = [f for f in fits(points) if (f.regime, f.amount) == (regime, amount)]
    return fit


def test_a_rest_that_grows_with_nothing_is_explained_by_nothing() -> None:
    """The sum of the stages and such a rest grows with both: that line says nothing of the rest."""
    points = made(lambda _, dice: dice.uniform(20_000, 40_000))
    sums = statistics.correlation([p.stages for p in points], [p.measured for p in points])
    assert sums**2 > 0.94
    for regime in Regime:
        fit = line(points, regime)
        assert fit.r_squared < 0.1
        assert fit.factor.low is not None
        assert fit.factor.high is not None
        assert fit.factor.low < 0 < fit.factor.high


def test_two_regimes_have_two_factors() -> None:
    """One line through both has a good R² and the factor of neither."""

    def of(size: int, _: random.Random) -> float:
        return 20_000 + 1.5 * size if size <= MTU else 24_000 + 0.25 * size

    points = made(of)
    one, several = line(points, Regime.ONE), line(points, Regime.SEVERAL)
    assert (one.base.value, one.factor.value) == (pytest.approx(20_000), pytest.approx(1.5))
    assert several.factor.value == pytest.approx(0.25)
    assert several.base.value == pytest.approx(24_000)
    assert (one.sizes, several.sizes) == (len(ONE), len(SEVERAL))
    assert several.r_squared == pytest.approx(1)
    by_packet = line(points, Regime.SEVERAL, "packets")
    assert by_packet.factor.value == pytest.approx(0.25 * MTU)


def test_a_large_message_s_noise_does_not_drown_the_small_ones() -> None:
    """5 % of 262144 bytes' time is more than a small message takes."""
    truth = 0.5
    points = made(lambda size, _: 5_000 + truth * size, noise=0.05, repetitions=30)
    fit = line(points, Regime.SEVERAL)
    xs = [p.amounts["bytes"] for p in points if p.regime is Regime.SEVERAL]
    ys = [p.rest for p in points if p.regime is Regime.SEVERAL]
    plain = statistics.linear_regression(xs, ys)
    assert abs(fit.base.value - 5_000) < abs(plain.intercept - 5_000)
    assert fit.factor.value == pytest.approx(truth, rel=0.1)


def test_against_the_weighted_normal_equations() -> None:
    points = [p for p in made(lambda size, _: 900 + size, noise=0.1) if p.regime is Regime.ONE]
    weights = [p.measured**-2 for p in points]
    xs, ys = [p.amounts["bytes"] for p in points], [p.rest for p in points]
    s = [sum(w * x**k for w, x in zip(weights, xs, strict=True)) for k in range(3)]
    t = [sum(w * y * x**k for w, x, y in zip(weights, xs, ys, strict=True)) for k in range(2)]
    slope = (s[0] * t[1] - s[1] * t[0]) / (s[0] * s[2] - s[1] ** 2)
    base = (t[0] - slope * s[1]) / s[0]
    fit = line(points, Regime.ONE)
    assert fit.factor.value == pytest.approx(slope)
    assert fit.base.value == pytest.approx(base)
    mean = t[0] / s[0]
    left = sum(w * (y - base - slope * x) ** 2 for w, x, y in zip(weights, xs, ys, strict=True))
    total = sum(w * (y - mean) ** 2 for w, y in zip(weights, ys, strict=True))
    assert fit.r_squared == pytest.approx(1 - left / total)


def test_intervals_need_enough_repetitions() -> None:
    few = made(lambda size, _: 900 + size, noise=0.02, repetitions=ENOUGH_REPETITIONS - 1)
    assert line(few, Regime.ONE).factor.low is None
    assert all(one.low is None for one in rest(few).values())
    many = made(lambda size, _: 900 + size, noise=0.02, repetitions=ENOUGH_REPETITIONS)
    fit = line(many, Regime.ONE)
    assert fit.factor.low is not None
    assert fit.factor.high is not None
    assert fit.factor.low < fit.factor.value < fit.factor.high
    assert fit == line(many, Regime.ONE), "the same points must give the same interval"


def test_intervals_cover_the_truth_about_as_often_as_they_claim() -> None:
    held = 0
    for seed in range(12):
        points = made(lambda size, _: 900 + 1.5 * size, noise=0.02, seed=seed)
        fit = line(points, Regime.ONE)
        assert fit.factor.low is not None
        assert fit.factor.high is not None
        held += fit.factor.low <= 1.5 <= fit.factor.high
    assert held >= 9, held  # the seeds are fixed, so the count is too


def test_an_undetermined_fit_is_none() -> None:
    two = made(lambda size, _: 1.0 * size, sizes=ONE[: FEWEST_SIZES - 1])
    assert fits(two) == []
    # one-packet messages do not differ in their packets
    one = made(lambda size, _: 1.0 * size, sizes=ONE)
    assert [fit.amount for fit in fits(one)] == ["bytes"]


def values(
    metric: str, kind: str, measured: float, tool: str = "perftest", transport: str = "rxe-v2"
) -> list[Value]:
    def one(node: str, name: str, kind: str, value: float) -> Value:
        return Value("tcg", tool, "t", transport, 64, 1, node, name, kind, value)

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
        one("n1", "cpu.softirq.network", "time", 700.0),
        one("n1", "cpu.softirq.net_rx.network", "time", 700.0),
        one("n2", "cpu.syscall.benchmark", "time", 300.0),
        one("n2", "cpu.user.benchmark", "time", 10_000.0),
        one("n2", "cpu.syscall.other", "time", 10_000.0),
    ]


def test_stages_include_the_queue_for_a_latency_but_not_for_a_rate() -> None:
    (latency,) = subjects(values("latency.mean", "one_way_half_rtt", 900.0))
    (point,) = latency.points
    assert (latency.quantity, latency.kind) == ("latency", "one_way_half_rtt")
    assert (point.stages, point.measured, point.regime) == (550.0, 900.0, Regime.ONE)
    assert latency.rest()[64].value == 350.0
    (rate,) = subjects(values("message_rate", "one_way", 1e6))
    (point,) = rate.points
    assert rate.quantity == "inverse_bandwidth"
    assert (point.stages, point.measured) == (50.0, 1000.0)


def test_amounts_are_per_message_and_cpu_time_by_owner() -> None:
    (subject,) = subjects(values("latency.mean", "one_way_half_rtt", 900.0))
    assert subject.points[0].amounts == {
        "bytes": 64.0,
        "packets": 1.0,
        "header bytes": 74.0,
        "kernel CPU with start": 10.0,
        "kernel CPU with start benchmark": 3.0,
        "kernel CPU with start network": 7.0,
    }


@pytest.mark.parametrize("tool", ["perftest", "mpibench"])
@pytest.mark.parametrize("kind", ["marginal", "marginal_kernel"])
def test_cpu_time_is_that_of_one_more_message(tool: str, kind: str) -> None:
    """Neither the start of the programs nor mpirun's is in it, so MPI has it, too."""

    def one(node: str, name: str, of: str, value: float) -> Value:
        return Value("tcg", tool, "t", "rxe-v2", 64, 1, node, name, of, value)

    every = values("latency.mean", "one_way_half_rtt", 900.0, tool=tool)
    (subject,) = subjects(
        [
            *every,
            one("n1", "benchmark.messages", "counter", 100.0),
            *(one(node, "cpu.syscall.benchmark", kind, 2.0) for node in ("n1", "n2")),
            one("n1", "cpu.kthread.rxe", kind, 5.0),
            one("n1", "cpu.user.benchmark", kind, 70.0),
            one("n1", "cpu.idle.other", kind, 70.0),
        ]
    )
    amounts = {k: v for k, v in subject.points[0].amounts.items() if "CPU" in k}
    assert amounts == {"kernel CPU": 9.0, "kernel CPU benchmark": 4.0, "kernel CPU rxe": 5.0}


def test_messages_are_those_that_the_benchmark_counted() -> None:
    """An MPI library adds its own bytes, so bytes on the wire do not tell messages there."""
    every = values("latency.mean", "one_way_half_rtt", 900.0, tool="mpibench")
    assert subjects(every) == []
    counted = Value("tcg", "mpibench", "t", "rxe-v2", 64, 1, "n1", "benchmark.messages", "c", 50.0)
    (subject,) = subjects([*every, counted])
    assert subject.points[0].stages == 1100.0
    # CPU time has the start of mpirun in it
    assert set(subject.points[0].amounts) == {"bytes", "packets", "header bytes"}
    assert subject.points[0].regime is Regime.SEVERAL, "two frames a message"


def test_without_stages_all_that_was_measured_is_the_rest() -> None:
    every = values("latency.mean", "one_way_half_rtt", 900.0, transport="tcp")
    (subject,) = subjects(value for value in every if not value.metric.startswith("stage."))
    assert not subject.has_stages
    assert subject.points[0].rest == 900.0


def test_an_adapter_s_packets_are_what_it_counts() -> None:
    def one(node: str, name: str, kind: str, value: float) -> Value:
        return Value("native", "perftest", "t", "hw-v2", 4096, 1, node, name, kind, value)

    (subject,) = subjects(
        [
            one("n1", "latency.mean", "one_way_half_rtt", 900.0),
            one("n1", "benchmark.messages", "counter", 200.0),
            one("n1", "benchmark.path_mtu", "setting", 1024.0),
            one("n1", "adapter.hw.sent_pkts", "counter", 500.0),
            one("n2", "adapter.hw.sent_pkts", "counter", 500.0),
            one("n1", "cpu.syscall.benchmark", "time", 300.0),
        ]
    )
    (point,) = subject.points
    assert point.regime is Regime.SEVERAL
    assert point.amounts["packets and answers"] == 5.0
    assert point.amounts["kernel CPU with start"] == 1.5


def test_rxe_without_stages_is_left_out() -> None:
    every = values("latency.mean", "one_way_half_rtt", 900.0)
    assert subjects(value for value in every if not value.metric.startswith("stage.rx")) == []
    assert subjects(value for value in every if value.metric != "latency.mean") == []
