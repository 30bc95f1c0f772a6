# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency between two emulated machines on one virtual clock repeats, next to other work."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import traffic
import vmlab
from rocelab.testbed import artifacts
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import DEVICE, prepare
from rocelab.testbed.qemu import bring_up
from rocelab.testbed.qemu import qemu_testbed as qemu

RUNS = 4
TOLERANCE = 0.01


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep this machine's processors busy."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def median_us(testbed: qemu.QemuTestbed) -> float:
    """Median of half a round trip of ib_write_lat, in virtual time."""
    n1, n2 = testbed.nodes
    common = ["ib_write_lat", "-d", DEVICE, "-s", "64", "-m", "4096", "-F", "-u", "21", "-n", "500"]
    with traffic.server(n2, [*common, "-x", traffic.gid_index(n2)]):
        client = [*common, "-x", traffic.gid_index(n1), n2.link.ipv4]
        with testbed.one_clock():
            out = n1.run(client, timeout=600).stdout
    row = re.search(r"^ 64 +500 +\S+ +\S+ +(\S+)", out, re.MULTILINE)
    assert row, out
    return float(row[1])


@pytest.fixture(scope="module")
def testbed() -> Iterator[qemu.QemuTestbed]:
    made = bring_up.up(
        f"lockstep-{os.getpid()}", line=vmlab.LINE, mtu=vmlab.MTU, lockstep=True, lifeline=True
    )
    try:
        prepare(made.nodes, artifacts.driver(vmlab.LINE), ())
        yield made
    finally:
        made.down()


@pytest.mark.long
def test_medians_repeat_whatever_the_host_does(testbed: qemu.QemuTestbed) -> None:
    with vmlab.healthy(testbed.nodes, "lockstep"):
        medians = [median_us(testbed) for _ in range(RUNS // 2)]
        with busy_loops(2):
            medians += [median_us(testbed) for _ in range(RUNS // 2)]
    assert max(medians) <= (1 + TOLERANCE) * min(medians), medians


def test_idle_machines_jump_only_in_a_hurry(testbed: qemu.QemuTestbed) -> None:
    """Otherwise their clocks keep to the host's: nobody waits for guests' timers in vain."""
    short, long = 1, 120

    def sleep(seconds: int) -> float:
        begun = time.monotonic()
        at_once(lambda node: node.run(["sleep", str(seconds)], timeout=long), testbed.nodes)
        return time.monotonic() - begun

    assert sleep(short) > 0.9 * short
    with testbed.hurry():
        assert sleep(long) < long / 2
    assert sleep(short) > 0.9 * short


# the last one: a machine is dead then
def test_a_machine_goes_on_after_the_other_s_death(testbed: qemu.QemuTestbed) -> None:
    """It neither waits for what will never come, nor does its clock stand still."""
    with testbed.one_clock():
        (pid,) = subprocess.run(
            ["pgrep", "-f", f"^qemu.* -name rocelab-{testbed.spec.name}-n2 "],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        os.kill(int(pid), signal.SIGKILL)
        testbed.nodes[0].run(["sleep", "1"])
