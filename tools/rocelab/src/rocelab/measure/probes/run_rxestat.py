# SPDX-License-Identifier: GPL-2.0-or-later
"""Have rxestat watch all nodes during one step (docs/formats/rxestat.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab import json_text
from rocelab.errors import CellError
from rocelab.measure.probes.loaded_probes import LoadedProbes, ProbeTask
from rocelab.measure.probes.probe_session import ProbeError
from rocelab.record import rxestat_document as stages
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machine_of, machines


def tasks(nodes: Sequence[Node], devices: Sequence[str]) -> list[ProbeTask]:
    """Return what to run, to observe `devices[i]` on `nodes[i]`.

    Nodes on one machine share one rxestat, because the cost of a second one would be part of the
    stages that the first one measures. It filters by one device, or not at all. Reports show the
    stage xmit.
    """
    every = []
    for machine in machines(nodes):
        watched = _devices_on(machine, nodes, devices)
        device = ("--device", *watched.values()) if len(watched) == 1 else ()
        argv = ("rxestat", "--json", "--xmit", "--node", "+".join(watched), *device)
        every.append(ProbeTask(machine, argv))
    return every


@contextmanager
def rxestat(
    probes: LoadedProbes,
    nodes: Sequence[Node],
    devices: Sequence[str],
    tasks: Sequence[ProbeTask],
    folder: Path,
) -> Iterator[None]:
    """Observe the nodes while the context lasts; on exit, write the JSON files.

    Raises ProbeError when a probe does not attach or does not write its result.
    """
    with probes.window(tasks) as printed:
        yield
    for task, output in zip(tasks, printed, strict=True):
        names = _devices_on(task.machine, nodes, devices)
        for name, device in names.items():
            _save(output.stdout, name, device, folder, shared=len(names) > 1)


def _devices_on(machine: Node, nodes: Sequence[Node], devices: Sequence[str]) -> Mapping[str, str]:
    """The devices on a machine, by node."""
    both = zip(nodes, devices, strict=True)
    return {node.name: device for node, device in both if machine_of(node) is machine}


def _save(document: str, node: str, device: str, folder: Path, *, shared: bool) -> None:
    try:
        text = _part(document, node, device) if shared else document
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
        whole = json_text.parse_any(text)
        part = {
            **whole,
            "node": node,
            "machine": whole["node"],
            **{key: [r for r in whole[key] if r["dev"] == device] for key in ("packets", "rows")},
        }
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CellError(f"its document cannot be read: {error!a:.80}") from error
    return json.dumps(part, separators=(",", ":")) + "\n"
