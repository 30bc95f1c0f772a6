# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxestat on both nodes around one step (docs/formats/rxestat.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import CellError
from rocelab.node import Completed, Node, Process
from rocelab.node.endpoint import machine_of, machines
from rocelab.run import stages
from rocelab.run.probe_process import ProbeError, attached


@contextmanager
def rxestat(nodes: Sequence[Node], devices: Sequence[str], folder: Path) -> Iterator[None]:
    """Observe `devices[i]` on `nodes[i]` while the context lasts; on exit the JSON files are there.

    Nodes that share a machine share its rxestat: a second one would be in the first one's stages.
    Raises ProbeError when a probe does not attach, or does not write what it saw.
    """
    watched = [
        {
            node.name: device
            for node, device in zip(nodes, devices, strict=True)
            if machine_of(node) is machine
        }
        for machine in machines(nodes)
    ]
    processes = [
        _start(machine, names) for machine, names in zip(machines(nodes), watched, strict=True)
    ]
    with attached("rxestat", processes) as results:
        yield
    for names, result in zip(watched, results, strict=True):
        for name, device in names.items():
            _save(result, name, device, folder, shared=len(names) > 1)


def _start(machine: Node, watched: Mapping[str, str]) -> Process:
    """`watched`: node → device. rxestat filters by one device, or not at all."""
    if len(watched) > 1:
        return machine.root.start(("rxestat", "--json", "--node", "+".join(watched)))
    (name, device), *_ = watched.items()
    return machine.root.start(("rxestat", "--json", "--device", device, "--node", name))


def _save(done: Completed, node: str, device: str, folder: Path, *, shared: bool) -> None:
    path = folder / stages.file_name(node)
    try:
        path.write_text(_part(done.stdout, node, device) if shared else done.stdout, "utf-8")
        stages.read(path)
    except CellError as error:
        raise ProbeError(f"rxestat on {node}: {error.what}", cause=error.cause) from error


def _part(text: str, node: str, device: str) -> str:
    """One node's part of the document of a machine that it shares: what is of its device.

    Records that were lost cannot be told apart, and stay in both parts.
    """
    try:
        whole = json.loads(text)
        part = {
            **whole,
            "node": node,
            **{key: [r for r in whole[key] if r["dev"] == device] for key in ("packets", "rows")},
        }
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CellError(f"its document cannot be read: {error!a:.80}") from error
    return json.dumps(part, separators=(",", ":")) + "\n"
