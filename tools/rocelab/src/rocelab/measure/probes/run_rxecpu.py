# SPDX-License-Identifier: GPL-2.0-or-later
"""Have rxecpu watch every machine during one step (docs/formats/rxecpu.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import CellError
from rocelab.measure.probes.loaded_probes import LoadedProbes, ProbeTask
from rocelab.measure.probes.probe_session import ProbeError
from rocelab.record import folded_stacks
from rocelab.record import rxecpu_document as cpu
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machine_name, machines
from rocelab.testbed.node.parallel import at_once

_INTERVAL_MS = 100


def tasks(
    nodes: Sequence[Node], programs: Sequence[str], *, stacks: bool = False
) -> list[ProbeTask]:
    """Return what to run. `programs` are the names of the benchmark's processes."""
    options = ("--json", "--interval", str(_INTERVAL_MS), "--comm", ",".join(programs))
    return [
        ProbeTask(
            machine,
            ("rxecpu", *options, "--node", machine_name(machine, nodes)),
            file=folded_stacks.file_name(machine_name(machine, nodes)) if stacks else "",
        )
        for machine in machines(nodes)
    ]


@contextmanager
def rxecpu(
    probes: LoadedProbes, nodes: Sequence[Node], tasks: Sequence[ProbeTask], folder: Path
) -> Iterator[None]:
    """Measure the CPU time of the nodes; on exit, write it to `rxecpu.<node>.json`.

    Where they write stacks, these are then in `rxecpu.<node>.folded`. Nodes on one machine share
    its processors and one document, `rxecpu.<node>+<node>.json`. Raises ProbeError.
    """
    with probes.window(tasks) as printed:
        yield
    for task, output in zip(tasks, printed, strict=True):
        name = machine_name(task.machine, nodes)
        (folder / cpu.file_name(name)).write_text(output.stdout, "utf-8")
        try:
            cpu.parse_text(output.stdout)
        except CellError as error:
            raise ProbeError(f"rxecpu on {name}: {error.what}", cause=error.cause) from error

    written = [task for task in tasks if task.file]
    at_once(lambda task: probes.fetch(task, folder / task.file), written)
