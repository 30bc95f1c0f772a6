# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxedump on every node around one step (docs/formats/rxedump.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.node import Completed, Node, Process
from rocelab.node.parallel import at_once
from rocelab.run.probes import ProbeError

_READY = "rxedump: ready"
_ATTACHES_WITHIN = 120
_WRITES_WITHIN = 120


@contextmanager
def rxedump(nodes: Sequence[Node], devices: Sequence[str], folder: Path) -> Iterator[None]:
    """Record the packets of `devices[i]` on `nodes[i]`; on exit `<node>.pcapng` are there.

    What each says of itself at its end, its losses among it, is in `rxedump.<node>.err`. Raises
    ProbeError when one does not attach, or fails.
    """
    processes = [_start(node, device) for node, device in zip(nodes, devices, strict=True)]
    try:
        at_once(_wait_ready, processes)
        yield
        at_once(lambda process: process.interrupt(), processes)
        results = at_once(_wait_result, processes)
    finally:
        for process in processes:
            process.kill()
    for node, done in zip(nodes, results, strict=True):
        if done.returncode:
            raise ProbeError(
                f"rxedump on {node.name} exited with {done.returncode}",
                cause=done.stderr.strip()[-500:],
            )
        (folder / f"rxedump.{node.name}.err").write_text(done.stderr, "utf-8")
    at_once(lambda node: _fetch(node, folder), nodes)


def _there(node: Node) -> str:
    # nodes may share a machine
    return f"/tmp/rocelab-{node.name}.pcapng"  # noqa: S108 -- on the node, which is ours


def _start(node: Node, device: str) -> Process:
    words = ("--write", _there(node), "--device", device, "--node", node.name)
    return node.start(("rxedump", *words))


def _wait_ready(process: Process) -> None:
    try:
        process.wait_for_line(_READY, timeout=_ATTACHES_WITHIN)
    except TestbedError as error:
        raise ProbeError(
            error.what, cause=error.cause, action="Try it by hand: `rocelab ssh n1 rxedump`."
        ) from error


def _wait_result(process: Process) -> Completed:
    try:
        return process.wait(timeout=_WRITES_WITHIN)
    except TestbedError as error:
        raise ProbeError("rxedump did not end its file", cause=error.cause) from error


def _fetch(node: Node, folder: Path) -> None:
    node.get(_there(node), folder / f"{node.name}.pcapng")
    node.run(["rm", "-f", _there(node)])
