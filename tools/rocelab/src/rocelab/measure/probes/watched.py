# SPDX-License-Identifier: GPL-2.0-or-later
"""Have all probes of a plan watch one step, in the order in which they disturb least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rocelab.measure.probes import run_rxecpu, run_rxedump, run_rxestat
from rocelab.measure.probes.loaded_probes import LoadedProbes
from rocelab.plans.benchmarks.tool import process_name
from rocelab.plans.catalog import STACKS, Probe, Transport
from rocelab.testbed.node import Node


@contextmanager
def watch(
    probes: LoadedProbes | None,
    nodes: Sequence[Node],
    transport: Transport,
    devices: Sequence[str],
    commands: Sequence[Sequence[str]],
    folder: Path,
    observe: Sequence[str],
) -> Iterator[None]:
    """Run the probes that `observe` names while the context lasts; write what they say to `folder`.

    No other one is attached meanwhile. `devices[i]` is the device of node i, which rxestat and
    rxedump watch if it is one of rxe. rxecpu begins last, around the benchmark alone, whose
    `commands` it looks for. Without `probes` that are loaded for longer, they are for this step.
    Raises ProbeError.
    """
    asked = {name for name in observe if transport.is_rxe or name in (Probe.RXECPU, STACKS)}
    with ExitStack() as stack:
        loaded = probes or stack.enter_context(LoadedProbes())
        stat = run_rxestat.tasks(nodes, devices) if Probe.RXESTAT in asked else []
        dump = run_rxedump.tasks(nodes, devices) if Probe.RXEDUMP in asked else []
        programs = _programs(loaded, commands)
        stacks = STACKS in asked
        cpu = run_rxecpu.tasks(nodes, programs, stacks=stacks) if Probe.RXECPU in asked else []
        loaded.detach_others([*stat, *dump, *cpu])
        # none is loaded while another one watches
        loaded.load([*stat, *dump, *cpu])
        if stat:
            stack.enter_context(run_rxestat.rxestat(loaded, nodes, devices, stat, folder))
        if dump:
            stack.enter_context(run_rxedump.rxedump(loaded, nodes, dump, folder))
        if cpu:
            stack.enter_context(run_rxecpu.rxecpu(loaded, nodes, cpu, folder))
        yield


def _programs(loaded: LoadedProbes, commands: Sequence[Sequence[str]]) -> Sequence[str]:
    """Names of the benchmark's processes: of all of a run's, for one rxecpu."""
    own = {process_name(argv) for argv in commands if argv}
    return loaded.programs if own <= set(loaded.programs) else sorted(own)
