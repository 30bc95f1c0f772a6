# SPDX-License-Identifier: GPL-2.0-or-later
"""Lead the frames of a machine's card through a faulty link, with QEMU's filter-redirector.

The redirectors are at the head of the card's filters, towards the link: a filter-dump sees what the
machine itself sends and receives. Requests are met after they were captured, answers before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rocelab.directory import temporary_folder
from rocelab.plans.fault import TO_CLIENT, TO_SERVER
from rocelab.testbed.faults.link import FaultyLink
from rocelab.testbed.faults.relay import Relay, Signal
from rocelab.testbed.qemu.qmp import execute

PREFIX = "fault-"
_QUEUES = {TO_SERVER: "rx", TO_CLIENT: "tx"}
"""As seen from the network: `rx` is what the client's machine sends."""


@contextmanager
def insert(qmp: Path, netdev: str, link: FaultyLink, signal: Signal) -> Iterator[None]:
    """Lead both directions of a card through `link` meanwhile. Raises TestbedError."""
    with ExitStack() as stack:
        # next to QEMU's own sockets: their path is short enough
        folder = Path(stack.enter_context(temporary_folder(dir=qmp.parent, prefix=PREFIX)))
        relay = Relay(folder, link, signal)
        stack.callback(relay.close)
        for (direction, end), path in relay.paths.items():
            name = f"{PREFIX}{direction}-{end}".replace("_", "-")
            address = {"type": "unix", "data": {"path": str(path)}}
            backend = {"type": "socket", "data": {"addr": address, "server": False}}
            execute(qmp, "chardev-add", {"id": name, "backend": backend})
            stack.callback(execute, qmp, "chardev-remove", {"id": name})
        relay.start()
        for direction, queue in _QUEUES.items():
            name = f"{PREFIX}{direction}".replace("_", "-")
            options = {
                "netdev": netdev,
                "queue": queue,
                "outdev": f"{name}-out",
                "indev": f"{name}-into",
                "position": "head",
            }
            execute(qmp, "object-add", {"qom-type": "filter-redirector", "id": name, **options})
            stack.callback(execute, qmp, "object-del", {"id": name})
        yield


def remove_all(qmp: Path) -> None:
    """Remove what a killed run left in a machine's QEMU. Raises TestbedError."""
    listed = execute(qmp, "qom-list", {"path": "/objects"})
    for each in listed if isinstance(listed, list) else []:
        if each.get("type") == "child<filter-redirector>":
            execute(qmp, "object-del", {"id": each["name"]})
    devices = execute(qmp, "query-chardev", {})
    for each in devices if isinstance(devices, list) else []:
        if str(each.get("label")).startswith(PREFIX):
            execute(qmp, "chardev-remove", {"id": each["label"]})
