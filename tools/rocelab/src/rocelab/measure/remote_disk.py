# SPDX-License-Identifier: GPL-2.0-or-later
"""Give the client a disk in the server's memory, over NVMe-oF or NFS, and take it away again.

remote_disk.sh does it on the nodes, and notes there how to undo it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import resources
from typing import Final

from rocelab.errors import CellError
from rocelab.measure import rdma_cm_mode
from rocelab.plans.benchmarks.fio import DISK_MIB
from rocelab.plans.benchmarks.tool import Job
from rocelab.plans.catalog import Transport
from rocelab.testbed import lease
from rocelab.testbed.node import Node

_SCRIPT: Final = "remote_disk.sh"
_IF_THERE: Final = '[ ! -e "$1" ] || exec sh "$@"'
_TIMEOUT: Final = 180
"""Seconds; under emulation loading a dozen modules takes several."""
_NQN: Final = "nqn.2014-08.org.nvmexpress:uuid:"
"""NVMe qualified names for those who own no domain (NVM Express Base Specification, 4.7)."""

Words = tuple[str, ...]


@contextmanager
def prepare(job: Job, transport: Transport, client: Node, server: Node) -> Iterator[Job]:
    """Yield the job with the folder in which the client finds the disk.

    Raises CellError when a node cannot serve or use such a disk, or when something of it is left
    afterwards, TestbedError when a node does not answer.
    """
    created = client.root.run(("mktemp", "-d", "/run/rocelab-file.XXXXXX"))
    ready = replace(job, folder=created.stdout.strip())
    over = "tcp" if transport.family == "tcp" else "rdma"
    needs, serve, use = (_nvme if job.test.name.startswith("nvme") else _nfs)(ready, over, client)
    try:
        with ExitStack() as stack:
            for node, modules in ((server, needs[0]), (client, needs[1])):
                stack.enter_context(_script(node, ready.folder))
                _do(node, ready, "load the modules", ("modules", *modules))
            if over == "rdma" and transport.gid_type:
                for node, end in ((client, job.client), (server, job.server)):
                    stack.enter_context(rdma_cm_mode.set_to(node, end, transport.gid_type))
            _do(server, ready, "serve a disk", serve)
            # taken away from the client before the server
            stack.callback(_down, client, ready.folder)
            _do(client, ready, "use the disk", use)
            yield ready
    finally:
        for node in (client, server):
            node.root.run(("rm", "-rf", "--one-file-system", ready.folder), check=False)


def _nvme(job: Job, over: str, client: Node) -> tuple[tuple[Words, Words], Words, Words]:
    """Return the modules of server and client, and what serves and uses the disk."""
    identity = str(uuid.uuid4())
    subsystem, host = f"{_NQN}{uuid.uuid4()}", f"{_NQN}{identity}"
    where = (over, job.server.ipv4, str(job.tcp_port), subsystem, host)
    owner = client.run(("id", "-u")).stdout.strip()
    return (
        (("null_blk", f"nvmet_{over}"), (f"nvme_{over}",)),
        ("nvme-target", *where, str(DISK_MIB)),
        ("nvme-host", *where, identity, job.client.ipv4, owner),
    )


def _nfs(job: Job, over: str, _: Node) -> tuple[tuple[Words, Words], Words, Words]:
    """Return the modules of server and client, and what serves and uses the file."""
    transport = ("rpcrdma",) if over == "rdma" else ()
    port = str(job.tcp_port)
    return (
        (("nfsd", *transport), ("nfsv4", *transport)),
        ("nfs-server", over, job.client.ipv4, port, str(DISK_MIB)),
        ("nfs-client", over, job.server.ipv4, port, job.client.ipv4),
    )


@contextmanager
def _script(node: Node, folder: str) -> Iterator[None]:
    """Put the script into the folder; on exit, and if the run dies, undo what it did."""
    path = f"{folder}/{_SCRIPT}"
    node.root.run(("mkdir", "-p", "-m", "0711", folder))
    node.root.run(("chmod", "0711", folder))
    text = (resources.files("rocelab.measure") / _SCRIPT).read_text("utf-8")
    node.root.run(("tee", path), stdin=text)
    lease.at_end(node, ("sh", "-c", _IF_THERE, "sh", path, "unload"))
    lease.at_end(node, ("sh", "-c", _IF_THERE, "sh", path, "down"))
    try:
        yield
    finally:
        try:
            _down(node, folder)
        finally:
            _script_says(node, folder, "unload")


def _down(node: Node, folder: str) -> None:
    if error := _script_says(node, folder, "down"):
        raise CellError(
            f"something of the disk is left on {node.name}",
            cause=error,
            action=f"On {node.name}: look at `mount`, /sys/kernel/config and `dmesg`.",
        )


def _script_says(node: Node, folder: str, command: str) -> str:
    """Run a command of the script that undoes something; return why it failed."""
    done = node.root.run(
        ("sh", "-c", _IF_THERE, "sh", f"{folder}/{_SCRIPT}", command),
        timeout=_TIMEOUT,
        check=False,
    )
    return done.stderr.strip()[-500:] or "?" if done.returncode else ""


def _do(node: Node, job: Job, task: str, words: Words) -> None:
    done = node.root.run(("sh", f"{job.folder}/{_SCRIPT}", *words), timeout=_TIMEOUT, check=False)
    if done.returncode:
        raise CellError(
            f"{job.test.program}: {node.name} cannot {task}",
            cause=done.stderr.strip()[-500:] or f"exit code {done.returncode}",
            action=f"On {node.name}: look at `dmesg`, and at docs/howto/storage.md for the modules "
            "that it needs.",
        )
