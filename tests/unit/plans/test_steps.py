# SPDX-License-Identifier: GPL-2.0-or-later
"""Iterations by size, and which sizes share an mpirun; counted by hand."""

from __future__ import annotations

import pytest

from rocelab.errors import UsageError
from rocelab.plans import plan_file
from rocelab.plans.plan import Benchmark
from rocelab.plans.steps import MAX_TOGETHER, message_bytes, steps_of
from rocelab.studies import library
from rocelab.studies.words import benchmark as words

HEAD = '[plan]\nname = "p"\ntransports = ["tcp"]\n[[benchmark]]\ntool = "mpibench"\n'
MIB = 1 << 20


def bench(text: str) -> Benchmark:
    plan = plan_file.from_toml(HEAD + text, "p.toml")
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    return plan.benchmarks[0]


def test_large_messages_have_fewer_iterations() -> None:
    """OSU: above 8 KiB."""
    benchmark = bench(
        'test = "latency"\nsizes = [0, 8192, 8193, 65536]\niterations = 10000\n'
        "large_iterations = 1000\n"
    )
    assert [benchmark.iterations_of(size) for size in benchmark.sizes] == [10000, 10000, 1000, 1000]


def test_emulated_nodes_may_have_fewer_iterations() -> None:
    """Where instructions are counted; a bound for large messages stays."""
    benchmark = bench(
        'test = "latency"\nsizes = [4, 65536]\niterations = 10000\ncounted_iterations = 300\n'
        "large_iterations = 1000\n"
    )
    counted = benchmark.where_counted()
    assert [benchmark.iterations_of(size) for size in benchmark.sizes] == [10000, 1000]
    assert [counted.iterations_of(size) for size in benchmark.sizes] == [300, 1000]
    assert counted.where_counted() == counted


def test_a_volume_bounds_the_iterations() -> None:
    """IMB: 1000, or as many as fit in 40 MiB; ours are never fewer than ten."""
    benchmark = bench(
        f'test = "latency"\nsizes = [0, 32768, 65536, {MIB}, {16 * MIB}]\niterations = 1000\n'
        f"volume = {40 * MIB}\n"
    )
    assert [benchmark.iterations_of(size) for size in benchmark.sizes] == [1000, 1000, 640, 40, 10]


@pytest.mark.parametrize("line", ["large_iterations = 9", "counted_iterations = 9", "volume = 0"])
def test_too_few_are_refused(line: str) -> None:
    with pytest.raises(UsageError, match=line.split(" ", maxsplit=1)[0]):
        bench(f'test = "latency"\nsizes = [4]\n{line}\n')


def test_sizes_with_other_iterations_have_their_own_mpirun() -> None:
    benchmark = bench(
        'test = "latency"\nsizes = [4, 8192, 16384, 32768]\niterations = 100\n'
        "large_iterations = 10\n"
    )
    assert steps_of(benchmark) == ((4, 8192), (16384,), (32768,))


def test_what_is_too_much_for_one_mpirun_has_its_own() -> None:
    # a window of 64 messages, counted for both directions
    sizes = [1, 1024, 65536, MIB, 4 * MIB]
    benchmark = bench(f'test = "bw"\nsizes = {sizes}\niterations = 20\n')
    assert message_bytes(benchmark, (65536,)) == 2 * 64 * 20 * 65536 < MAX_TOGETHER
    assert steps_of(benchmark) == ((1, 1024, 65536), (MIB,), (4 * MIB,))
    apart = bench(f'test = "bw"\nsizes = {sizes}\niterations = 20\n[benchmark.mpi]\nsweep = false')
    assert steps_of(apart) == tuple((size,) for size in sizes)


def test_no_step_of_a_full_study_is_too_much() -> None:
    """At the 130 Mbit/s of kaur2014, one direction of each shared step takes under 10 s."""
    for name in library.NAMES:
        for each in library.plan(name, quick=False).benchmarks:
            for sizes in steps_of(each):
                if len(sizes) > 1:
                    assert (message_bytes(each, sizes) or 0) / 2 / (130e6 / 8) < 10


def test_a_study_says_its_iterations() -> None:
    plan = library.plan("kaur2014", quick=False)
    said = {of.title: dict(words(of, plan))["iterations"] for of in plan.benchmarks}
    assert said["bw-osu"] == "100, above 8 KiB 20"
    assert said["latency-imb"] == "1000, at most 40 MiB"
