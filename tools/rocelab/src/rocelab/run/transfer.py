# SPDX-License-Identifier: GPL-2.0-or-later
"""What a file transfer needs on its two nodes, and takes with it when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from rocelab.bench.catalog import Transport
from rocelab.bench.tool import End, Job, Transfer
from rocelab.bench.transfer import CONFIG, EMPTY, SOURCE, TARGET
from rocelab.errors import CellError
from rocelab.node import Node
from rocelab.node.endpoint import machines

_MODES = "/sys/kernel/config/rdma_cm"
_WRITE = 'printf %s "$2" > "$1"'


@contextmanager
def prepared(
    transfer: Transfer, job: Job, transport: Transport, client: Node, server: Node
) -> Iterator[Job]:
    """A file of random bytes at the client, and a folder at the server that it can go into.

    Yields the job, with the name of the folder that both have. All is gone afterwards. Raises
    CellError when a node cannot have it, TestbedError when it does not answer.
    """
    # root's, and in memory: the server's user may write into one folder of it, and see no other
    made = client.root.run(("mktemp", "-d", "/run/rocelab-file.XXXXXX"))
    ready = replace(job, folder=made.stdout.strip())
    try:
        with ExitStack() as stack:
            if transfer.by == "rdma_cm":
                for node, end in ((client, job.client), (server, job.server)):
                    stack.enter_context(_rdma_cm(node))
                    if transport.gid_type:
                        stack.enter_context(_roce_mode(node, end, transport.gid_type))
            _make_folders(ready, transfer, client, server)
            yield ready
    finally:
        for machine in machines((client, server)):
            machine.root.run(("rm", "-rf", ready.folder), check=False)


def compared(job: Job, client: Node, server: Node) -> str:
    """SHA-256 of what was sent, once it is what arrived. Raises CellError."""
    sent = _hash(client, f"{job.folder}/{SOURCE}")
    arrived = _hash(server, f"{job.folder}/{TARGET}")
    if sent != arrived:
        raise CellError(
            f"{job.test.program}, {job.size} bytes: what arrived is not what was sent",
            cause=f"SHA-256 {sent} at {client.name}, {arrived} at {server.name}",
        )
    return sent


def _make_folders(job: Job, transfer: Transfer, client: Node, server: Node) -> None:
    source, target = (f"{job.folder}/{path}" for path in (SOURCE, TARGET))
    there = server.root
    there.run(("mkdir", "-p", "-m", "0711", job.folder))
    # mkdir's mode is for what it makes; on one machine the folder is there already
    there.run(("chmod", "0711", job.folder))
    there.run(("mkdir", target.rpartition("/")[0], f"{job.folder}/{EMPTY}"))
    if there.run(("chown", transfer.user, target.rpartition("/")[0]), check=False).returncode:
        raise CellError(
            f"{server.name} has no user {transfer.user}",
            cause="the server's package makes it, and is not installed",
            action="Install Debian's packages vsftpd and rdmacm-utils on all nodes.",
        )
    if transfer.config is not None:
        there.run(("tee", f"{job.folder}/{CONFIG}"), stdin=transfer.config(job))
    client.root.run(("chmod", "0711", job.folder))
    client.root.run(("mkdir", source.rpartition("/")[0]))
    client.root.run(
        (
            *("dd", "if=/dev/urandom", f"of={source}", "bs=64K", "status=none"),
            *("iflag=fullblock,count_bytes", f"count={job.size}"),
        )
    )
    client.root.run(("chmod", "0711", source.rpartition("/")[0]))
    client.root.run(("chmod", "0644", source))


def _hash(node: Node, path: str) -> str:
    done = node.root.run(("sha256sum", path), check=False)
    if done.returncode:
        raise CellError(
            f"{node.name} has no file that was transferred", cause=done.stderr.strip()[-200:]
        )
    return done.stdout.split()[0]


@contextmanager
def _rdma_cm(node: Node) -> Iterator[None]:
    """rdma_cm for programs: a module that a node may not have loaded yet."""
    was_loaded = not node.run(("test", "-d", "/sys/module/rdma_ucm"), check=False).returncode
    node.root.run(("modprobe", "rdma_ucm"))
    try:
        yield
    finally:
        if not was_loaded:
            node.root.run(("modprobe", "-r", "rdma_ucm"), check=False)


@contextmanager
def _roce_mode(node: Node, end: End, gid_type: str) -> Iterator[None]:
    """The RoCE version by which rdma_cm connects, and so rcopy, which has no say in it."""
    device = f"{_MODES}/{end.device}"
    mode = f"{device}/ports/{end.port}/default_roce_mode"
    was_there = not node.run(("test", "-d", device), check=False).returncode
    node.root.run(("mkdir", "-p", device))
    try:
        before = node.run(("cat", mode)).stdout.strip()
        node.root.run(("sh", "-c", _WRITE, "sh", mode, gid_type))
        try:
            yield
        finally:
            node.root.run(("sh", "-c", _WRITE, "sh", mode, before), check=False)
    finally:
        if not was_there:
            node.root.run(("rmdir", device), check=False)
