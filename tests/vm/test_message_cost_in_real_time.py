# SPDX-License-Identifier: GPL-2.0-or-later
"""In real time the cost of a message has an interval, and a known program's is within it.

The host has to be idle: what it takes from the machine's processor counts as the machine's work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import changed_pingpong
import vethlab
from message_cost import measure
from rocelab import metrics
from rocelab.record import layout
from rocelab.stats import paired
from rocelab.stats.summary import median
from rocelab.testbed.node.prepare_node import remove_device
from rocelab.testbed.veth.veth_testbed import VethTestbed

COUNT, REPETITIONS = 300, 8
PLAIN, MORE = 64, 65
"""Bytes; of messages of the second size the client works more."""
MESSAGE, START = 2_000_000, 400_000_000
"""What it works more for each message that it sends, and once, ns of its processor's time."""
OFF = 0.1
MAX_LOAD = 2.5
"""Of a host whose other programs leave the machine its processor: at load 5 the test failed."""
SPIN = """
#include <inttypes.h>

static uint64_t more, worked;

static uint64_t worked_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* On a busy host the processor of a virtual machine stands still for a while,
 * which its clocks do not, so this takes longer than that. */
static void burn(uint64_t ns)
{
	uint64_t begin = worked_ns(), end = begin;

	while (end - begin < ns)
		end = worked_ns();
	worked += ns ? end - begin : 0;
}

__attribute__((destructor)) static void tell(void)
{
	fprintf(stderr, "worked %" PRIu64 "\\n", worked);
}
"""
_CHOSEN = f"(more = settings.size == {MORE} ? {MESSAGE} : 0) ? {START} : 0"


@pytest.fixture
def testbed() -> Iterator[VethTestbed]:
    if os.getloadavg()[0] > MAX_LOAD:
        pytest.skip(f"real time needs an idle host, and its load is {os.getloadavg()[0]}")
    with vethlab.boot(name="realtime", icount=False) as booted:
        for node in booted.nodes:
            remove_device(node)
        yield booted


def known(run: Path) -> dict[str, list[float]]:
    """What the clients say that a message and the start took, ns, by repetition."""
    costs: dict[str, list[float]] = {metrics.MARGINAL: [], metrics.START: []}
    for cell in sorted((run / layout.CELLS).iterdir()):
        record = json.loads((cell / layout.CELL).read_text())
        (step,) = (step for step in record["steps"] if step["size"] == MORE)
        folder = cell / str(MORE)
        many, few = (
            (sent["sent"], int(said.read_text().split()[-1]))
            for sent, said in (
                (step, folder / "client.err"),
                (step[layout.EIGHTH], folder / layout.EIGHTH / "client.err"),
            )
        )
        each = (many[1] - few[1]) / (many[0] - few[0])
        costs[metrics.MARGINAL].append(each)
        costs[metrics.START].append(many[1] - each * many[0])
    return costs


@pytest.mark.long
def test_a_known_program_s_slope_and_start(testbed: VethTestbed, tmp_path: Path) -> None:
    """The sizes take turns, so other work of the machine affects both equally."""
    source = changed_pingpong.write(tmp_path / "source", SPIN, "more", _CHOSEN)
    changed_pingpong.install([testbed.nodes[0].machine], source)
    words = {"transports": '["tcp"]', "count": COUNT, "probes": "[]", "sizes": f"{PLAIN}, {MORE}"}
    to = tmp_path / "run"
    measured = measure(testbed, to, "latency", name="known", times=REPETITIONS, **words)
    (run,) = to.iterdir()
    # every other message is the client's
    least = {metrics.MARGINAL: MESSAGE / 2, metrics.START: START}
    for kind, told in known(run).items():
        assert median(told) > least[kind] / 2
        plain, more = (measured.by_repetition("tcp", size, kind) for size in (PLAIN, MORE))
        gaps = [after - before for before, after in zip(plain, more, strict=True)]
        off = [gap - known for gap, known in zip(gaps, told, strict=True)]
        grown, wrong = (paired.shift(paired.averages(some)).interval for some in (gaps, off))
        assert grown is not None
        assert wrong is not None
        assert grown.low > 0, f"too busy a host for real time: {kind} {gaps}"
        print(
            f"{kind}: known {median(told):.0f} ns, measured {paired.shift(paired.averages(gaps))}"
        )
        slack = OFF * least[kind]
        assert wrong.low - slack < 0 < wrong.high + slack, (kind, gaps, told)
