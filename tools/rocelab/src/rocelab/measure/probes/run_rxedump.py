# SPDX-License-Identifier: GPL-2.0-or-later
"""Have rxedump watch every node during one step (docs/formats/rxedump.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.measure.probes.loaded_probes import LoadedProbes, ProbeTask
from rocelab.record import layout
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machine_of
from rocelab.testbed.node.parallel import at_once


def tasks(nodes: Sequence[Node], devices: Sequence[str]) -> list[ProbeTask]:
    """Return what to run, to record the packets of `devices[i]` on `nodes[i]`."""
    return [
        ProbeTask(
            machine_of(node),
            ("rxedump", "--device", device, "--node", node.name),
            node=node.name,
            file=layout.trace(node.name),
            reports=False,
        )
        for node, device in zip(nodes, devices, strict=True)
    ]


@contextmanager
def rxedump(
    probes: LoadedProbes, nodes: Sequence[Node], tasks: Sequence[ProbeTask], folder: Path
) -> Iterator[None]:
    """Record the packets of the nodes; on exit, fetch them as `<node>.pcapng`.

    `rxedump.<node>.err` has the summary that rxedump prints at its end, with the number of lost
    records. Raises ProbeError.
    """
    with probes.window(tasks) as printed:
        yield
    for node, output in zip(nodes, printed, strict=True):
        (folder / layout.errors(f"rxedump.{node.name}")).write_text(output.stderr, "utf-8")
    at_once(lambda task: probes.fetch(task, folder / task.file), tasks)
