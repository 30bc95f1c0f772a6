# SPDX-License-Identifier: GPL-2.0-or-later
"""The faults of a step: have them happen, write down what they met, and how it was mended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocelab.measure.counters import Counters
from rocelab.measure.rig import Rig
from rocelab.plans.benchmarks import perftest
from rocelab.plans.plan import Cell
from rocelab.record import driver_trace, faults_document, layout
from rocelab.testbed.faults import traffic_control
from rocelab.testbed.faults.link import FaultyLink
from rocelab.testbed.faults.server_process import Server, signals
from rocelab.testbed.faults.timed_signal import send_signals
from rocelab.testbed.faults.traffic_control import CountedLink
from rocelab.testbed.interface import CanFail
from rocelab.testbed.node import Completed, Node
from rocelab.testbed.node.endpoint import machine_of

if TYPE_CHECKING:
    from rocelab.correlate.recovery import Recovery

Link = FaultyLink | CountedLink
"""A link with faults by the proxy, or by tc."""
_COUNTERS = (
    *("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "rcvd_rnr_err", "send_rnr_err"),
    *("completer_retry_err", "retry_exceeded_err", "retry_rnr_exceeded_err"),
)
"""Of rxe: what tells that something was lost or sent again."""


@contextmanager
def faulty(rig: Rig, cell: Cell, device: str) -> Iterator[Link]:
    """Have a cell's faults happen meanwhile; without any, the link is left alone.

    Some befall the second node's process of its program, the server, which uses `device`.

    Raises CellError or TestbedError when the testbed fails to.
    """
    faults = cell.benchmark.faults
    if not faults:
        yield FaultyLink(())
        return
    testbed, (client, node) = rig.testbed, rig.nodes[:2]
    server = Server(node, cell.test.program, device)
    if isinstance(testbed, CanFail):
        # perftest with rdma_cm exchanges its addresses over a separate queue pair
        first = int(cell.benchmark.retry_count is not None)
        proxied = FaultyLink(faults, pairs_before=first)
        with signals(server) as waiting, testbed.faulty(proxied, waiting.send):
            yield proxied
        return
    with (
        traffic_control.faulty(node, client.link.ipv4, faults) as counted,
        send_signals(server, counted, by_rdma_cm=cell.benchmark.retry_count is not None),
    ):
        yield counted


def drain(link: Link, rig: Rig) -> None:
    """Wait until faults hold no packet back."""
    if isinstance(link, CountedLink):
        traffic_control.drain(rig.nodes[1], link)


def place_faults(link: Link, wire: Path, rig: Rig) -> None:
    """Find what faults met in the capture, where they did not say so. Raises CellError."""
    if isinstance(link, CountedLink):
        # takes polars, which a run without faults need not load
        from rocelab.measure import fault_places

        fault_places.find(link, wire, rig.nodes[0].link.ipv4)


def count_cm_packets(wire: Path) -> int:
    """Return the number of the connection manager's packets in a capture: to queue pair 1."""
    import polars as pl

    from rocelab import capture

    return pl.DataFrame(capture.read(str(wire)).packets).filter(pl.col("dqpn") == 1).height


def record(
    link: Link,
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
    result = recovery(step / layout.WIRE_CAPTURE, client, link.events)
    ended = (
        {} if failed is None else {"ended": _end_of_connection(result, failed, step, rig.nodes[0])}
    )
    counted = {
        node: {name: counters.rxe[name] for name in _COUNTERS if counters.rxe.get(name)}
        for node, counters in moved.items()
    }
    by_tc = {"tc": _by_tc(link)} if isinstance(link, CountedLink) else {}
    never = [fault.name for fault in link.faults if fault.name not in link.met]
    return {"faults": {**asdict(result), "driver": counted, "never_met": never, **ended, **by_tc}}


def _by_tc(link: CountedLink) -> dict[str, Any]:
    """What tc counted."""
    return {
        "requests": link.requests,
        "faults": {each.fault: {"seen": each.seen, "met": each.met} for each in link.counted},
    }


def _end_of_connection(
    result: Recovery, failed: Completed, step: Path, client: Node
) -> dict[str, Any]:
    """How the client's connection ended, as capture, driver and application saw it."""
    trace = step / layout.events(machine_of(client).name)
    waited = driver_trace.gave_up_after_ns(trace.read_text("utf-8")) if trace.exists() else None
    tried = result.unanswered
    return {
        "exit_status": failed.returncode,
        "completion_status": perftest.completion_error(failed.stdout + failed.stderr),
        "gave_up_ns": tried.span_ns + waited if tried and waited is not None else None,
    }
