# SPDX-License-Identifier: GPL-2.0-or-later
"""The faults of a step: have them happen, write down what they met, and how it was mended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocelab.errors import CellError, TestbedError
from rocelab.measure.counters import Counters
from rocelab.measure.rig import Rig
from rocelab.plans.benchmarks import perftest
from rocelab.plans.plan import Cell
from rocelab.record import driver_trace, faults_document, layout
from rocelab.testbed.faults.link import FaultyLink
from rocelab.testbed.interface import CanFail
from rocelab.testbed.node import Completed, Node
from rocelab.testbed.node.endpoint import machine_of
from rocelab.testbed.node.interface import MARK

if TYPE_CHECKING:
    from rocelab.correlate.recovery import Recovery

# SIGKILL has worked when the process is gone, and its queue pairs with it
_SIGNAL = f"""
for pid in $(pgrep -x "$2"); do
	grep -qsz ^{MARK}= "/proc/$pid/environ" || continue
	kill "-$1" "$pid" || exit
	while [ "$1" = KILL ] && grep -qs '^State:.[^ZX]' "/proc/$pid/status"; do sleep 0.01; done
	found=1
done
[ "$found" ]
"""
_COUNTERS = (
    *("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "rcvd_rnr_err", "send_rnr_err"),
    *("completer_retry_err", "retry_exceeded_err", "retry_rnr_exceeded_err"),
)
"""Of rxe: what tells that something was lost or sent again."""


@contextmanager
def faulty(rig: Rig, cell: Cell) -> Iterator[FaultyLink]:
    """Have a cell's faults happen meanwhile; without any, the link is left alone.

    Some befall the second node's process of its program, the server.

    Raises CellError when the testbed cannot, TestbedError when it fails to.
    """
    faults, program = cell.benchmark.faults, cell.test.program
    if not faults:
        yield FaultyLink(())
        return
    testbed = rig.testbed
    if not isinstance(testbed, CanFail):
        raise CellError(
            "this testbed's link cannot have faults",
            cause="faults happen on the link between two virtual machines",
            action='Use provider = "qemu" with two nodes.',
        )
    server = rig.nodes[1]
    # perftest with rdma_cm exchanges its addresses over a queue pair of their own
    first = int(cell.benchmark.retry_count is not None)
    link = FaultyLink(faults, pairs_before=first)
    with testbed.faulty(link, lambda name: _signal(server, name, program)):
        yield link


def _signal(server: Node, name: str, program: str) -> None:
    done = server.run(("sh", "-c", _SIGNAL, "sh", name, program), check=False)
    if done.returncode and name != "CONT":
        raise TestbedError(
            f"no process {program} on {server.name} could get SIG{name}",
            cause=done.stderr.strip()[-200:] or "the server had ended",
            action="Choose an earlier message for the fault.",
        )


def managed(wire: Path) -> int:
    """Return the number of the connection manager's packets in a capture: to queue pair 1."""
    import polars as pl

    from rocelab import capture

    return pl.DataFrame(capture.read(str(wire)).packets).filter(pl.col("dqpn") == 1).height


def record(
    link: FaultyLink,
    step: Path,
    rig: Rig,
    moved: Mapping[str, Counters],
    failed: Completed | None,
) -> dict[str, Any]:
    """Write faults.json, and return what cell.json says of a step's faults: nothing without any.

    `failed`: the client that a fault ended.
    """
    if not link.faults:
        return {}
    # takes polars, which a run without faults need not load
    from rocelab.correlate.recovery import recovery

    faults_document.write(step, link.events, link.passed, unlisted=link.unlisted)
    client = rig.nodes[0].link.ipv4
    found = recovery(step / layout.WIRE_CAPTURE, client, link.events)
    ended = {} if failed is None else {"ended": _ended(found, failed, step, rig.nodes[0])}
    counted = {
        node: {name: counters.rxe[name] for name in _COUNTERS if counters.rxe.get(name)}
        for node, counters in moved.items()
    }
    never = [fault.name for fault in link.faults if fault.name not in link.met]
    return {"faults": {**asdict(found), "driver": counted, "never_met": never, **ended}}


def _ended(found: Recovery, failed: Completed, step: Path, client: Node) -> dict[str, Any]:
    """How the client's connection ended, as capture, driver and application saw it."""
    trace = step / layout.events(machine_of(client).name)
    waited = driver_trace.gave_up_after_ns(trace.read_text("utf-8")) if trace.exists() else None
    tried = found.unanswered
    return {
        "exit_status": failed.returncode,
        "completion_status": perftest.completion_error(failed.stdout + failed.stderr),
        "gave_up_ns": tried.span_ns + waited if tried and waited is not None else None,
    }
