# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxedump on every node around one step (docs/formats/rxedump.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.node import Node, Process
from rocelab.node.parallel import at_once
from rocelab.run.probe_process import attached


@contextmanager
def rxedump(nodes: Sequence[Node], devices: Sequence[str], folder: Path) -> Iterator[None]:
    """Record the packets of `devices[i]` on `nodes[i]`; on exit `<node>.pcapng` are there.

    What each says of itself at its end, its losses among it, is in `rxedump.<node>.err`. Raises
    ProbeError when one does not attach, or fails.
    """
    processes = [_start(node, device) for node, device in zip(nodes, devices, strict=True)]
    with attached("rxedump", processes) as results:
        yield
    for node, done in zip(nodes, results, strict=True):
        (folder / f"rxedump.{node.name}.err").write_text(done.stderr, "utf-8")
    at_once(lambda node: _fetch(node, folder), nodes)


def _there(node: Node) -> str:
    # nodes may share a machine
    return f"/tmp/rocelab-{node.name}.pcapng"  # noqa: S108 -- on the node, which is ours


def _start(node: Node, device: str) -> Process:
    words = ("--write", _there(node), "--device", device, "--node", node.name)
    return node.root.start(("rxedump", *words))


def _fetch(node: Node, folder: Path) -> None:
    node.root.get(_there(node), folder / f"{node.name}.pcapng")
    node.root.run(["rm", "-f", _there(node)])
