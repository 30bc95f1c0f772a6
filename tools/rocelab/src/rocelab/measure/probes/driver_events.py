# SPDX-License-Identifier: GPL-2.0-or-later
"""Record the driver's events about recovery, around a step with faults (docs/events.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.plans.fault import FaultPlan
from rocelab.record import layout
from rocelab.testbed import lease
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machines

_INSTANCE = "/sys/kernel/tracing/instances/rocelab-faults"
_EVENTS = ("retransmit", "timeout", "nak", "rnr", "qp_state")
_REMOVE = f"rmdir {_INSTANCE} 2>/dev/null || true"
# a stock driver has no such events; an instance that a killed run left goes first
_BEGIN = f"""
[ -d /sys/kernel/tracing/events/rxe ] || exit 3
[ ! -d {_INSTANCE} ] || rmdir {_INSTANCE}
mkdir {_INSTANCE} && cd {_INSTANCE} && echo 4096 >buffer_size_kb && echo mono >trace_clock || exit
for event; do echo 1 >"events/rxe/rxe_$event/enable" || exit; done
"""
_END = f"echo 0 >{_INSTANCE}/tracing_on; cat {_INSTANCE}/trace; rmdir {_INSTANCE}"
_STOCK = 3


@contextmanager
def record(nodes: Sequence[Node], folder: Path, faults: Sequence[FaultPlan]) -> Iterator[None]:
    """Write `events.<node>.txt` of each machine on exit; nothing without faults or such events.

    Raises TestbedError.
    """
    traced: list[Node] = []
    for machine in machines(nodes) if faults else ():
        lease.at_end(machine, ("sh", "-c", _REMOVE))
        begun = machine.root.run(("sh", "-c", _BEGIN, "sh", *_EVENTS), check=False)
        if begun.returncode != _STOCK:
            traced.append(machine)
    try:
        yield
    except BaseException:
        for machine in traced:
            with suppress(TestbedError):
                machine.root.run(("sh", "-c", _REMOVE))
        raise
    for machine in traced:
        trace = machine.root.run(("sh", "-c", _END)).stdout
        (folder / layout.events(machine.name)).write_text(trace, "utf-8")
