# SPDX-License-Identifier: GPL-2.0-or-later
"""Time limits by what was measured; counted by hand."""

from __future__ import annotations

import pytest

from rocelab import metrics
from rocelab.measure.adaptive_timeout import AdaptiveTimeout
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.tool import Value
from rocelab.plans.plan import Benchmark

MIB = 1 << 20


def bench(lines: str, tool: str = "perftest") -> Benchmark:
    text = f'[plan]\nname = "p"\ntransports = ["rxe-v2"]\n[[benchmark]]\ntool = "{tool}"\n{lines}\n'
    return plan_file.from_toml(text, "p.toml").benchmarks[0]


def test_the_plan_s_timeout_is_the_least() -> None:
    quick = bench('test = "send_lat"\nsizes = [64]\ntimeout = 20')
    timeout = AdaptiveTimeout()
    timeout.learn(64, [Value(metrics.LATENCY, "", 10_000, "ns")])
    assert timeout.limit(quick, (64,), by_time=False) == 20


def test_a_full_stream_over_a_slow_link_gets_the_time_that_it_needs() -> None:
    """kaur2014's Soft RoCE reached 130 Mbit/s: a window of 64 at 4 MiB, 100 times, takes 1652 s."""
    stream = bench(f'test = "bw"\nsizes = [{2 * MIB}, {4 * MIB}]\niterations = 100', "mpibench")
    timeout = AdaptiveTimeout()
    timeout.learn(2 * MIB, [Value(metrics.MESSAGE_RATE, "", 130e6 / 8 / (2 * MIB), "1/s")])
    takes = 100 * 64 * 4 * MIB / (130e6 / 8)
    assert takes == pytest.approx(1652, abs=1)
    assert timeout.limit(stream, (4 * MIB,), by_time=False) == round(3 * takes)


def test_a_bandwidth_without_a_rate_counts_too() -> None:
    """IMB prints no message rate."""
    stream = bench(f'test = "bw"\nsizes = [{MIB}]\niterations = 100', "imb")
    timeout = AdaptiveTimeout()
    timeout.learn(MIB, [Value(metrics.BANDWIDTH, "", 1e6, "bytes/s")])
    assert timeout.limit(stream, (MIB,), by_time=False) == round(3 * 6400 * MIB / 1e6)


def test_messages_of_one_packet_take_as_long_as_each_other() -> None:
    """Extrapolation goes by packets: a byte's time is no measure of a mebibyte's."""
    each = bench(f'test = "send_lat"\nsizes = [1, 64, {MIB}]\niterations = 1000000\ntimeout = 1')
    timeout = AdaptiveTimeout()
    timeout.learn(1, [Value(metrics.LATENCY, "", 5_000, "ns")])
    assert timeout.limit(each, (64,), by_time=False) == 3 * 10
    assert timeout.limit(each, (MIB,), by_time=False) == 3 * 10 * MIB // 256


def test_without_a_rate_a_slow_link_is_assumed() -> None:
    large = bench(f'test = "send_lat"\nsizes = [{MIB}]\niterations = 10000')
    assert AdaptiveTimeout().limit(large, (MIB,), by_time=False) == round(
        3 * 2 * 10000 * MIB / 1.25e6
    )
    # the first size was never measured: larger ones say nothing about it
    timeout = AdaptiveTimeout()
    timeout.learn(2 * MIB, [Value(metrics.LATENCY, "", 1e6, "ns")])
    assert timeout.limit(large, (MIB,), by_time=False) == AdaptiveTimeout().limit(
        large, (MIB,), by_time=False
    )


def test_a_file_is_one_message() -> None:
    files = bench('test = "put"\nsizes = [65536]\niterations = 10000', "rcopy")
    assert AdaptiveTimeout().limit(files, (65536,), by_time=False) == 300


def test_a_program_that_runs_for_a_time_gets_it() -> None:
    long = bench('test = "write_bw"\nsizes = [64, 128]\nseconds = 600\ncpu_util = true')
    assert AdaptiveTimeout().limit(long, (64,), by_time=True) == 900
