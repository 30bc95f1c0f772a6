# SPDX-License-Identifier: GPL-2.0-or-later
"""Live interfaces on running nodes: the packets in tshark, and nothing left after a stop.

The long run, a minute of load and a hundred stops, takes about half an hour:

    ROCELAB_EXTCAP_LOAD_S=60 ROCELAB_EXTCAP_STOPS=100 .venv/bin/pytest tests/vm/test_extcap.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import traffic
import tshark_plugin
from command_line import rocelab
from extcap_live import Live, ask, count, here, there
from pcapng_file import read_pcapng
from polling import wait_until
from requirements import need_program
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxestat_watch import counter

LOAD_S = float(os.environ.get("ROCELAB_EXTCAP_LOAD_S", "3"))
STOPS = int(os.environ.get("ROCELAB_EXTCAP_STOPS", "4"))
HOW = ("SIGTERM", "closed", "SIGINT", "SIGKILL")
# in a separate PID namespace, and without a process between it and the one that stops it
_BIND = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


def interface(testbed: QemuTestbed, node: Node) -> str:
    return f"rocelab-{testbed.state.name}-{node.name}-{DEVICE}"


def moved(node: Node) -> int:
    return counter(node, "sent_pkts") + counter(node, "rcvd_pkts")


def some_arrive(testbed: QemuTestbed, path: Path) -> int:
    """Send until the file has packets; return the first node's time after that."""
    n1, n2 = testbed.nodes
    deadline = time.monotonic() + 600
    while not count(path):
        assert time.monotonic() < deadline, "no packet arrives"
        traffic.perftest("ib_send_lat", n1, n2, size=8, iterations=5)
    return int(n1.run(["date", "+%s%N"]).stdout)


def connections(testbed: QemuTestbed) -> list[str]:
    """List this machine's processes that fetch a capture from the testbed."""
    return here(str(testbed.state.path))


@contextmanager
def leaving_nothing(testbed: QemuTestbed, node: Node) -> Iterator[None]:
    """Assert that nothing started in the context is left after it."""
    before = Counter(there(node).splitlines())
    yield
    wait_until("no process here", lambda: not connections(testbed))
    wait_until("nothing new there", lambda: Counter(there(node).splitlines()) <= before)


@contextmanager
def tshark_live(
    name: str, path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[subprocess.Popen[str]]:
    """`tshark -i NAME -w PATH` with the extcap installed."""
    need_program("tshark")
    monkeypatch.setenv("HOME", str(home))
    assert rocelab("wireshark", "install").returncode == 0
    # 4.0 looks only in the system's folder, so users link it there
    listed = tshark_plugin.Tshark(home).run("-G", "folders").splitlines()
    folder = [line.partition(":")[2].strip() for line in listed if "Extcap path:" in line][-1]
    own = home / ".local/lib/wireshark/extcap"
    argv = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", _BIND, "sh"]
    argv += [str(own), folder, "tshark", "-q", "-i", name, "-w", str(path)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_the_nodes_are_listed(testbed: QemuTestbed) -> None:
    listed = ask("--extcap-interfaces").stdout
    for node in testbed.nodes:
        title = f"Soft RoCE {DEVICE} on {node.name} of testbed {testbed.state.name}"
        assert f"{{value={interface(testbed, node)}}}{{display={title}}}" in listed


def test_tshark_sees_what_the_driver_counts(
    testbed: QemuTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n1, n2 = testbed.nodes
    path = tmp_path / "tshark.pcapng"
    home = tmp_path / "home"
    home.mkdir()
    with (
        leaving_nothing(testbed, n1),
        tshark_live(interface(testbed, n1), path, home, monkeypatch) as tshark,
    ):
        began, before = some_arrive(testbed, path), moved(n1)
        traffic.perftest("ib_write_bw", n1, n2, size=64, iterations=200)
        packets = moved(n1) - before
        wait_until("every packet", lambda: count(path, began) >= packets)
        tshark.send_signal(signal.SIGINT)
        assert tshark.wait(timeout=300) == 0, tshark.stderr and tshark.stderr.read()
    assert packets > 200
    assert count(path, began) == packets
    shown = tshark_plugin.Tshark(home)
    words = ["-r", path, "-Y", f'rocelab.stage.icrc && rocelab.node == "{n1.name}"', "-T", "fields"]
    assert len(shown.run(*words, "-e", "frame.number").split()) == count(path)


def test_load_loses_nothing_unsaid(testbed: QemuTestbed, tmp_path: Path) -> None:
    n1, n2 = testbed.nodes
    with leaving_nothing(testbed, n1):
        live = Live(tmp_path, interface(testbed, n1))
        began, before = some_arrive(testbed, live.path), moved(n1)
        deadline, runs = time.monotonic() + LOAD_S, 0
        while not runs or time.monotonic() < deadline:
            traffic.perftest("ib_write_bw", n1, n2, size=4096, iterations=1000)
            runs += 1
        packets = moved(n1) - before
        assert packets > 1000 * runs
        status, said = live.end()
        assert (status, said) == (0, "")
    # a file that ends within a block is an error here
    counters = read_pcapng(live.path).counters()
    arrived = count(live.path, began)
    print(f"{packets} packets in {runs} runs, {arrived} arrived, {counters['lost']} reported lost")
    assert counters["delivered"] == count(live.path)
    assert counters["received"] == counters["delivered"] + counters["lost"]
    assert packets - counters["lost"] <= arrived <= packets


def test_a_stop_leaves_nothing(testbed: QemuTestbed, tmp_path: Path) -> None:
    node = testbed.nodes[1]
    for number in range(STOPS):
        how = HOW[number % len(HOW)]
        with leaving_nothing(testbed, node):
            live = Live(tmp_path, interface(testbed, node))
            live.wait_ready()
            assert connections(testbed)
            assert "rxedump" in there(node)
            if how == "closed":
                live.close()
            status, said = live.end(None if how == "closed" else signal.Signals[how])
            expected = -signal.SIGKILL if how == "SIGKILL" else 0
            assert (status, said) == (expected, ""), (number, how)


def test_what_rxedump_says_is_for_the_dialog(testbed: QemuTestbed, tmp_path: Path) -> None:
    node = testbed.nodes[0]
    with leaving_nothing(testbed, node):
        live = Live(tmp_path, interface(testbed, node), "--opcode", "RC_NOTHING")
        status, said = live.end(None)
    assert status == 4
    assert f"Soft RoCE {DEVICE} on {node.name}" in said
    assert "no such BTH opcode or class: 'RC_NOTHING'" in said
