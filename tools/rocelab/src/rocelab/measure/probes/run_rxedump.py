# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxedump on every node during one step (docs/formats/rxedump.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.measure.probes.probe_process import attached
from rocelab.record import layout
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.parallel import at_once


@contextmanager
def rxedump(nodes: Sequence[Node], devices: Sequence[str], folder: Path) -> Iterator[None]:
    """Record the packets of `devices[i]` on `nodes[i]`; on exit, fetch them as `<node>.pcapng`.

    `rxedump.<node>.err` has the summary that rxedump prints at its end, with the number of lost
    records. Raises ProbeError when one does not attach or fails.
    """
    processes = [_start(node, device) for node, device in zip(nodes, devices, strict=True)]
    with attached("rxedump", processes) as results:
        yield
    for node, done in zip(nodes, results, strict=True):
        (folder / layout.errors(f"rxedump.{node.name}")).write_text(done.stderr, "utf-8")
    at_once(lambda node: _fetch(node, folder), nodes)


def _remote_path(node: Node) -> str:
    # nodes may share a machine
    return f"/tmp/rocelab-dump.{node.name}.pcapng"  # noqa: S108 -- on the node, which is ours


def _start(node: Node, device: str) -> Process:
    words = ("--write", _remote_path(node), "--device", device, "--node", node.name)
    return node.root.start(("rxedump", *words))


def _fetch(node: Node, folder: Path) -> None:
    node.root.get(_remote_path(node), folder / layout.trace(node.name))
    node.root.run(["rm", "-f", _remote_path(node)])
