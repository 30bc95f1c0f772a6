# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals to the server's process so long after the client's first request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from rocelab.errors import CellError, TestbedError
from rocelab.plans.fault import OF_PROCESS, Action, FaultPlan
from rocelab.testbed.faults.server_process import SEND, Server
from rocelab.testbed.faults.traffic_control import REQUESTS_SO_FAR, CountedLink
from rocelab.testbed.node import Process

_SAYS = "rocelab-signal: "
_LATER = f"""
{SEND}
until [ "$({REQUESTS_SO_FAR})" -ge "$6" ]; do sleep 0.02; done
sleep "$4"
send "$1" "$2" "$3" || {{ echo "{_SAYS}none"; exit 1; }}
[ "$1" = KILL ] || sleep "$5"
[ "$1" = KILL ] || send CONT "$2" "$3"
echo "{_SAYS}done"
"""
_END_SECONDS = 60
_PAST_EXCHANGE = 50
"""Requests after which perftest with rdma_cm has exchanged its addresses, which takes fourteen."""


@contextmanager
def send_signals(server: Server, link: CountedLink, *, by_rdma_cm: bool) -> Iterator[None]:
    """Send the signals of a link's faults at their times while the context lasts.

    `by_rdma_cm`: the benchmark first exchanges addresses over another queue pair. Raises CellError
    when the server had ended before.
    """
    with ExitStack() as stack:
        waiting = [
            (fault, _start(server, fault, _PAST_EXCHANGE if by_rdma_cm else 1, stack))
            for fault in link.faults
            if fault.action in OF_PROCESS
        ]
        yield
        for fault, process in waiting:
            _finish(server, fault, process)
            link.met.add(fault.name)


def _start(server: Server, fault: FaultPlan, requests: int, stack: ExitStack) -> Process:
    signal = "KILL" if fault.action is Action.KILL else "STOP"
    times = _seconds((fault.at_us, fault.duration_us))
    words = (signal, server.program, server.device, *times, str(requests))
    process = server.node.start(("sh", "-c", _LATER, "sh", *words))
    stack.callback(process.kill)
    return process


def _finish(server: Server, fault: FaultPlan, process: Process) -> None:
    answer = ""
    with ExitStack() as ignored:
        ignored.callback(process.kill)
        try:
            answer = process.wait_for_line(_SAYS, timeout=fault.duration_us / 1e6 + _END_SECONDS)
        except TestbedError as error:
            answer = error.what
    if answer != f"{_SAYS}done":
        raise CellError(
            f"{server.program} on {server.node.name} did not get fault {fault.name}",
            cause=f"it had ended {fault.at_us} µs after the client's first request"
            if answer == f"{_SAYS}none"
            else answer,
            action="Choose an earlier at_us, or more iterations.",
        )


def _seconds(microseconds: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"{each / 1e6:.6f}" for each in microseconds)
