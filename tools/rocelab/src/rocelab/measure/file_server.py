# SPDX-License-Identifier: GPL-2.0-or-later
"""Set up what a file transfer needs on its two nodes, and clean it up afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from rocelab.errors import CellError
from rocelab.measure import rdma_cm_mode
from rocelab.plans.benchmarks.file_copy import CONFIG, EMPTY, SOURCE, TARGET
from rocelab.plans.benchmarks.tool import Job, Transfer
from rocelab.plans.catalog import Transport
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machines


@contextmanager
def prepare(
    transfer: Transfer, job: Job, transport: Transport, client: Node, server: Node
) -> Iterator[Job]:
    """Make a file of random bytes where the transfer begins, and a folder for it where it ends.

    Yields the job with the folder's name, which is the same on both nodes; removes everything on
    exit. Raises CellError when the setup fails, TestbedError when a node does not answer.
    """
    # in memory and owned by root; who receives the file can write into one of its folders only
    created = client.root.run(("mktemp", "-d", "/run/rocelab-file.XXXXXX"))
    ready = replace(job, folder=created.stdout.strip())
    try:
        with ExitStack() as stack:
            if transfer.by == "rdma_cm":
                for node, end in ((client, job.client), (server, job.server)):
                    stack.enter_context(_rdma_cm(node))
                    if transport.gid_type:
                        stack.enter_context(rdma_cm_mode.set_to(node, end, transport.gid_type))
            _make_folders(ready, transfer, client, server)
            yield ready
    finally:
        for machine in machines((client, server)):
            machine.root.run(("rm", "-rf", ready.folder), check=False)


def verify(transfer: Transfer, job: Job, client: Node, server: Node) -> str:
    """Check that the file arrived unchanged; return its SHA-256. Raises CellError."""
    sender, receiver = (server, client) if transfer.fetches(job.test) else (client, server)
    sent = _hash(sender, f"{job.folder}/{SOURCE}")
    arrived = _hash(receiver, f"{job.folder}/{TARGET}")
    if sent != arrived:
        raise CellError(
            f"{job.test.program}, {job.size} bytes: the received file differs from the sent one",
            cause=f"SHA-256 {sent} at {sender.name}, {arrived} at {receiver.name}",
            action="Look for corrupted packets: `rocelab analyze` on the cell's wire.pcap.",
        )
    return sent


def _make_folders(job: Job, transfer: Transfer, client: Node, server: Node) -> None:
    root = server.root
    root.run(("mkdir", "-p", "-m", "0711", job.folder))
    # mkdir does not change the mode of an existing folder, as when both nodes share a machine
    for node in (server, client):
        node.root.run(("chmod", "0711", job.folder))
    root.run(("mkdir", f"{job.folder}/{EMPTY}"))
    if transfer.config is not None:
        root.run(("tee", f"{job.folder}/{CONFIG}"), stdin=transfer.config(job))
    if transfer.fetches(job.test):
        _make_target(job, client, client.run(("id", "-u")).stdout.strip())
        _make_source(job, server)
    else:
        _make_target(job, server, transfer.user)
        _make_source(job, client)


def _make_target(job: Job, receiver: Node, user: str) -> None:
    """Make the folder in which the file arrives, for a user whose name or number is `user`."""
    target = f"{job.folder}/{TARGET}".rpartition("/")[0]
    receiver.root.run(("mkdir", target))
    if receiver.root.run(("chown", user, target), check=False).returncode:
        raise CellError(
            f"{receiver.name} has no user {user}",
            cause="the server's package creates it, and is not installed",
            action="Install Debian's packages vsftpd and rdmacm-utils on all nodes.",
        )


def _make_source(job: Job, sender: Node) -> None:
    """Make the file, readable by all who can name it: the folder's name is random."""
    source = f"{job.folder}/{SOURCE}"
    folder = source.rpartition("/")[0]
    sender.root.run(("mkdir", folder))
    sender.root.run(
        (
            *("dd", "if=/dev/urandom", f"of={source}", "bs=64K", "status=none"),
            *("iflag=fullblock,count_bytes", f"count={job.size}"),
        )
    )
    sender.root.run(("chmod", "0711", folder))
    sender.root.run(("chmod", "0644", source))


def _hash(node: Node, path: str) -> str:
    done = node.root.run(("sha256sum", path), check=False)
    if done.returncode:
        raise CellError(
            f"the transferred file is missing on {node.name}",
            cause=done.stderr.strip()[-200:],
            action="Look at client.err and server.err in the cell's folder.",
        )
    return done.stdout.split()[0]


@contextmanager
def _rdma_cm(node: Node) -> Iterator[None]:
    """Load rdma_ucm, through which programs use rdma_cm, unless it is loaded."""
    was_loaded = not node.run(("test", "-d", "/sys/module/rdma_ucm"), check=False).returncode
    node.root.run(("modprobe", "rdma_ucm"))
    try:
        yield
    finally:
        if not was_loaded:
            node.root.run(("modprobe", "-r", "rdma_ucm"), check=False)
