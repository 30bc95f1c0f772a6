# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxestat on all nodes during one step (docs/formats/rxestat.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import CellError
from rocelab.measure.probes.probe_process import ProbeError, attached
from rocelab.record import rxestat_document as stages
from rocelab.testbed.node import Completed, Node, Process
from rocelab.testbed.node.endpoint import machine_of, machines


@contextmanager
def rxestat(nodes: Sequence[Node], devices: Sequence[str], folder: Path) -> Iterator[None]:
    """Observe `devices[i]` on `nodes[i]` while the context lasts; on exit, write the JSON files.

    Nodes on one machine share one rxestat, because the cost of a second one would be part of the
    stages that the first one measures. Raises ProbeError when a probe does not attach or does not
    write its result.
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
    """Start rxestat for these devices by node. It filters by one device, or not at all.

    Reports show the stage xmit.
    """
    names = "+".join(watched)
    device = ("--device", *watched.values()) if len(watched) == 1 else ()
    return machine.root.start(("rxestat", "--json", "--xmit", "--node", names, *device))


def _save(done: Completed, node: str, device: str, folder: Path, *, shared: bool) -> None:
    try:
        text = _part(done.stdout, node, device) if shared else done.stdout
        (folder / stages.file_name(node)).write_text(text, "utf-8")
        stages.parse_text(text)
    except CellError as error:
        raise ProbeError(f"rxestat on {node}: {error.what}", cause=error.cause) from error


def _part(text: str, node: str, device: str) -> str:
    """Extract one node's part, by its device, from the document of a machine that nodes share.

    Lost records and the processors' events cannot be assigned to a device, so each part counts all
    of them. `machine` says whose.
    """
    try:
        whole = json.loads(text)
        part = {
            **whole,
            "node": node,
            "machine": whole["node"],
            **{key: [r for r in whole[key] if r["dev"] == device] for key in ("packets", "rows")},
        }
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CellError(f"its document cannot be read: {error!a:.80}") from error
    return json.dumps(part, separators=(",", ":")) + "\n"
