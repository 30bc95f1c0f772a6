# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxecpu on every machine during one step (docs/formats/rxecpu.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import CellError
from rocelab.measure.probes.probe_process import ProbeError, attached
from rocelab.record import folded_stacks
from rocelab.record import rxecpu_document as cpu
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machine_of, machines

_INTERVAL_MS = 100


@contextmanager
def rxecpu(
    nodes: Sequence[Node], programs: Sequence[str], folder: Path, *, stacks: bool = False
) -> Iterator[None]:
    """Measure the CPU time of the nodes; on exit, write it to `rxecpu.<node>.json`.

    With `stacks`, their folded stacks are in `rxecpu.<node>.folded`.

    `programs` are the names of the benchmark's processes. Nodes on one machine share its
    processors and one document, `rxecpu.<node>+<node>.json`. Raises ProbeError.
    """
    shared = [
        "+".join(node.name for node in nodes if machine_of(node) is machine)
        for machine in machines(nodes)
    ]
    command = ("rxecpu", "--json", "--interval", str(_INTERVAL_MS), "--comm", ",".join(programs))
    processes = [
        machine.root.start(
            (*command, "--node", name, *(("--stacks", _remote(name)) if stacks else ()))
        )
        for machine, name in zip(machines(nodes), shared, strict=True)
    ]
    with attached("rxecpu", processes) as results:
        yield
    for name, done in zip(shared, results, strict=True):
        (folder / cpu.file_name(name)).write_text(done.stdout, "utf-8")
        try:
            cpu.parse_text(done.stdout)
        except CellError as error:
            raise ProbeError(f"rxecpu on {name}: {error.what}", cause=error.cause) from error
    if stacks:
        for machine, name in zip(machines(nodes), shared, strict=True):
            machine.root.get(_remote(name), folder / folded_stacks.file_name(name))
            machine.root.run(["rm", "-f", _remote(name)])


def _remote(name: str) -> str:
    return f"/tmp/rocelab-dump.{name}.folded"  # noqa: S108 -- on the node, which is ours
