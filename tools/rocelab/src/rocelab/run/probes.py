# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxestat on both nodes around one step (docs/formats/rxestat.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import CellError, TestbedError
from rocelab.node import Completed, Node, Process
from rocelab.node.parallel import at_once
from rocelab.run import stages

_READY = "rxestat: ready"
_ATTACHES_WITHIN = 120
_WRITES_WITHIN = 60


class ProbeError(CellError):
    """A probe gave nothing that may be used."""


@contextmanager
def rxestat(nodes: Sequence[Node], devices: Sequence[str], folder: Path) -> Iterator[None]:
    """Observe `devices[i]` on `nodes[i]` while the context lasts; on exit the JSON files are there.

    Raises ProbeError when a probe does not attach, or does not write what it saw.
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
    for node, result in zip(nodes, results, strict=True):
        _save(result, node.name, folder)


def _start(node: Node, device: str) -> Process:
    return node.start(("rxestat", "--json", "--device", device, "--node", node.name))


def _wait_ready(process: Process) -> None:
    try:
        process.wait_for_line(_READY, timeout=_ATTACHES_WITHIN)
    except TestbedError as error:
        raise ProbeError(
            error.what, cause=error.cause, action="Try it by hand: `rocelab ssh n1 rxestat`."
        ) from error


def _wait_result(process: Process) -> Completed:
    try:
        return process.wait(timeout=_WRITES_WITHIN)
    except TestbedError as error:
        raise ProbeError("rxestat did not write its result", cause=error.cause) from error


def _save(done: Completed, node: str, folder: Path) -> None:
    if done.returncode:
        raise ProbeError(
            f"rxestat on {node} exited with {done.returncode}", cause=done.stderr.strip()[-500:]
        )
    path = folder / stages.file_name(node)
    path.write_text(done.stdout, "utf-8")
    try:
        stages.read(path)
    except CellError as error:
        raise ProbeError(f"rxestat on {node}: {error.what}", cause=error.cause) from error
