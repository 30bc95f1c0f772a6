# SPDX-License-Identifier: GPL-2.0-or-later
"""mpibench agrees with NetPIPE: in turn, in one boot, over veth, with two processors."""

from __future__ import annotations

import os

import pytest

import netpipe
import vmlab
from requirements import missing
from rocelab.errors import MissingError
from rocelab.stats.summary import spread
from rocelab.testbed import artifacts
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.veth import veth_testbed as veth

pytestmark = pytest.mark.long
SIZE = 1024


def test_medians_agree_within_their_intervals() -> None:
    """Six repetitions are the minimum for a 95 % interval; both crossed the pair, not lo."""
    try:
        testbed = veth.up(
            f"netpipe-{os.getpid()}",
            line=vmlab.LINE,
            mtu=vmlab.MTU,
            vcpus=2,
            emulation="tcg",
            lifeline=True,
        )
    except MissingError as error:
        missing(f"{error.what}: {error.action}")
    try:
        machine = testbed.nodes[0].machine
        install_probes(machine, [artifacts.mpibench(vmlab.LINE)])
        assert machine.run(("nproc",)).stdout.strip() == "2"
        sent = f"/sys/class/net/{testbed.nodes[0].link.netdev}/statistics/tx_bytes"
        before = int(machine.run(("cat", sent)).stdout)
        times = 100
        results = netpipe.in_turn(testbed.nodes, SIZE, repetitions=6, times=times)
        crossed = int(machine.run(("cat", sent)).stdout) - before
    finally:
        testbed.down()
    assert crossed >= 12 * netpipe.TRIALS * times * SIZE
    one, other = spread(results.netpipe), spread(results.mpibench)
    assert one.interval is not None
    assert other.interval is not None
    assert one.interval.low <= other.interval.high, results
    assert other.interval.low <= one.interval.high, results
