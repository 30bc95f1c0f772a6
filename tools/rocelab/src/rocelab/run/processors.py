# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxecpu on every machine around one step (docs/formats/rxecpu.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import CellError
from rocelab.node import Node
from rocelab.node.endpoint import machine_of, machines
from rocelab.run import cpu
from rocelab.run.probe_process import ProbeError, attached

_INTERVAL_MS = 100


@contextmanager
def rxecpu(nodes: Sequence[Node], programs: Sequence[str], folder: Path) -> Iterator[None]:
    """Split the CPU time of the nodes; on exit `rxecpu.<node>.json` are there.

    `programs` are the names of the benchmark's processes. Nodes that share a machine share its
    processors and one document, `rxecpu.<node>+<node>.json`. Raises ProbeError.
    """
    shared = [
        "+".join(node.name for node in nodes if machine_of(node) is machine)
        for machine in machines(nodes)
    ]
    command = ("rxecpu", "--json", "--interval", str(_INTERVAL_MS), "--comm", ",".join(programs))
    processes = [
        machine.root.start((*command, "--node", name))
        for machine, name in zip(machines(nodes), shared, strict=True)
    ]
    with attached("rxecpu", processes) as results:
        yield
    for name, done in zip(shared, results, strict=True):
        path = folder / cpu.file_name(name)
        path.write_text(done.stdout, "utf-8")
        try:
            cpu.read(path)
        except CellError as error:
            raise ProbeError(f"rxecpu on {name}: {error.what}", cause=error.cause) from error
