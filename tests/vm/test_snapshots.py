# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that were saved and restored: each is another machine, and they all work."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rocelab.testbed import artifacts, preparation
from rocelab.testbed.node import Node
from rocelab.testbed.preparation import Payload
from rocelab.testbed.qemu import bring_up, snapshot_cache
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from vmlab import LINE, MTU

_UNIQUE = {
    "host key": "cat /run/rocelab/host_key",
    "authorized key": "cat /run/rocelab/authorized_keys",
    "machine-id": "cat /etc/machine-id",
    "random bytes": "head -c 16 /dev/urandom | od -An -tx1",
    "boot of programs": "cat /proc/sys/kernel/random/uuid",
}

_LATE = 600
"""Seconds; the image's clock is months late."""


@contextmanager
def up(name: str, said: list[str] | None = None, **options: Any) -> Iterator[QemuTestbed]:
    """Bring two machines up for as long as the context lasts; `said` gets what is printed."""
    testbed = bring_up.up(
        f"{name}-{os.getpid()}",
        line=LINE,
        mtu=MTU,
        lifeline=True,
        say=said.append if said is not None else lambda _: None,
        **options,
    )
    try:
        yield testbed
    finally:
        testbed.down()


def prepared() -> preparation.Preparation:
    return preparation.of_nodes(Payload(artifacts.driver(LINE), tuple(artifacts.probes(LINE))))


def first_queue_pair(node: Node) -> int:
    """Return the number of the next queue pair of a node: a server makes one, and waits."""
    server = node.start(["stdbuf", "-oL", "ibv_rc_pingpong", "-d", "rxe0", "-g", "1"])
    try:
        return int(server.wait_for_line("local address:", timeout=60).split("QPN ")[1][2:8], 16)
    finally:
        server.kill()


def unique(node: Node) -> dict[str, str]:
    return {what: node.run(["sh", "-c", how]).stdout for what, how in _UNIQUE.items()}


def test_two_testbeds_of_one_snapshot_side_by_side() -> None:
    """Keys, random numbers and names are each machine's own, the clocks are right, links apart."""
    said: list[list[str]] = [[], []]
    with ExitStack() as stack:
        with up("first", preparation=prepared()):
            pass  # saved from here on
        both = [
            stack.enter_context(up(f"side{number}", said[number], preparation=prepared()))
            for number in range(2)
        ]
        assert all("n1 and n2 restored in" in " ".join(lines) for lines in said)
        nodes = [node for testbed in both for node in testbed.nodes]
        for what in _UNIQUE:
            values = [unique(node)[what] for node in nodes]
            # the two nodes of a testbed share their login key
            wanted = 2 if what in ("host key", "authorized key") else 4
            assert len(set(values)) == wanted, what
        # 512 numbers for each of two machines
        assert len({tuple(first_queue_pair(node) for node in one.nodes) for one in both}) == 2
        for node in nodes:
            before = time.time()
            there = float(node.run(["date", "+%s.%N"]).stdout)
            # where instructions are counted a machine's clock stands still while the host is busy
            assert before - _LATE < there < time.time() + 5
        for testbed in both:
            n1, n2 = testbed.nodes
            assert [node.run(["hostname"]).stdout for node in (n1, n2)] == ["n1\n", "n2\n"]
            assert n1.run(["ping", "-c2", "-i0.1", "n2"], check=False).returncode == 0
            assert "state ACTIVE" in n1.run(["rdma", "link"]).stdout
            assert n2.run(["rxestat", "--json", "true"]).returncode == 0
        # what one does the other does not see
        both[0].nodes[0].run(["touch", "/root/mine"])
        assert both[1].nodes[0].run(["test", "-e", "/root/mine"], check=False).returncode


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The snapshots of two bare machines, in a cache of this test's."""
    keys: list[str] = []
    find = snapshot_cache.find

    def noted(key: str) -> snapshot_cache.Snapshot | None:
        keys.append(key)
        return find(key)

    with monkeypatch.context() as watched:
        watched.setattr(snapshot_cache, "find", noted)
        with up("bad"):
            pass  # they are in the user's cache from here on
    whole = [each.path for key in dict.fromkeys(keys) if (each := find(key))]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    copies = snapshot_cache.folder()
    copies.mkdir(parents=True, mode=0o700)
    return [Path(shutil.copy2(each, copies)) for each in whole]


def test_a_bad_snapshot_means_a_boot(saved: list[Path]) -> None:
    """Torn, corrupt or of another QEMU: the reason is said, the testbed comes up, and is saved."""
    assert len(saved) == 2
    corrupt = bytearray(saved[0].read_bytes())
    corrupt[len(corrupt) // 2] ^= 0x55
    saved[0].write_bytes(corrupt)
    os.truncate(saved[1], saved[1].stat().st_size - 7)
    said: list[str] = []
    with up("bad", said) as testbed:
        assert testbed.nodes[0].run(["hostname"]).stdout == "n1\n"
    text = "\n".join(said)
    assert "not restored, but booted" in text
    assert "n1 and n2 booted in" in text
    with up("bad", said) as testbed:
        assert testbed.nodes[1].run(["hostname"]).stdout == "n2\n"
    assert "n1 and n2 restored in" in said[-1]
