# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans on real nodes: all counts agree, impostors are caught, no partial results remain."""

from __future__ import annotations

import contextlib
import json
import math
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import vmlab
from pcapng_file import read_pcapng
from rocelab import metrics
from rocelab.errors import ExitCode
from rocelab.measure import runner
from rocelab.measure.cell import Outcome, measure
from rocelab.measure.progress import NullProgress
from rocelab.measure.rig import Rig
from rocelab.plans import plan_file
from rocelab.plans.catalog import TRANSPORTS
from rocelab.plans.plan import Cell, Plan
from rocelab.record import results_table
from rocelab.testbed import artifacts, verbs, verbs_ports
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed

MTU = 4096


def plan(benchmarks: str, *, repetitions: int = 1, probes: str = '["rxestat"]') -> Plan:
    """Return a plan over rxe-v2 unless a benchmark has another transport."""
    head = f"""
[plan]
name = "vm"
repetitions = {repetitions}
transports = ["rxe-v2"]
probes = {probes}
"""
    return plan_file.from_toml(head + benchmarks, "vm.toml")


def benchmark(tool: str, test: str, sizes: str, *, n: int = 50, transport: str = "rxe-v2") -> str:
    """Return a benchmark; its ACK timeout of 1 s avoids retransmissions on a slow node."""
    return f"""
[[benchmark]]
tool = "{tool}"
test = "{test}"
sizes = {sizes}
iterations = {n}
qp_timeout = 18
transports = ["{transport}"]
"""


TCP_LAT = benchmark("qperf", "tcp_lat", "[64]", transport="tcp")


class Table:
    """results.parquet of a run, by question."""

    def __init__(self, run: Path) -> None:
        self.frame = results_table.load(run)

    def sum(self, metric: str, **where: object) -> int:
        """Return the sum of a metric's values."""
        rows = self.frame.filter(pl.col("metric") == metric, **where)
        return round(rows["value"].sum())

    def one(self, metric: str, **where: object) -> float:
        """Return the only value of a metric."""
        (value,) = self.frame.filter(pl.col("metric") == metric, **where)["value"].to_list()
        return float(value)


def test_times_come_from_a_pass_without_probes(testbed: Testbed, tmp_path: Path) -> None:
    """By a client and a server, and by MPI: both passes are proven, and only one was watched."""
    benchmarks = benchmark("perftest", "send_bw", "[64]")
    benchmarks += benchmark("mpibench", "latency", "[64]")
    asked = replace(plan(benchmarks), timing_pass=True)
    for node in testbed.nodes:
        install_probes(node, [artifacts.mpibench(vmlab.LINE)])
    outcome = runner.run(asked, testbed, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    for cell in asked.cells():
        folder = outcome.path / "cells" / cell.name
        (step,) = json.loads((folder / "cell.json").read_text())["steps"]
        assert step["timing"]["proof"]["ok"]
        assert step["timing"]["probe"] == []
        assert [check["ok"] for check in step["probe"]] == [True] * 4
        assert list((folder / "64").glob("rxestat*"))
        assert not list((folder / "64/timing").glob("rxestat*"))
    table = Table(outcome.path)
    read = {"send_bw": (metrics.BANDWIDTH, bandwidth), "latency": (metrics.LATENCY, latency_ns)}
    for cell in asked.cells():
        metric, printed = read[cell.test.name]
        watched = outcome.path / "cells" / cell.name / "64"
        for name, folder in (
            (metric, watched / "timing"),
            (metrics.Watched(metric).name, watched),
        ):
            value = table.one(name, test=cell.test.name)
            assert value == pytest.approx(printed(folder), rel=1e-9), (cell, name)
            assert value > 0


def bandwidth(step: Path) -> float:
    """What perftest printed of messages of 64 bytes, in bytes/s."""
    row = re.search(r"^ 64 .*\s(\d\S+)\s*$", (step / "client.out").read_text(), re.MULTILINE)
    assert row
    return 64e6 * float(row[1])


def latency_ns(step: Path) -> float:
    (result,) = json.loads((step / "mpirun.out").read_text())["results"]
    return float(result["latency_ns"])


def test_every_count_agrees(testbed: Testbed, tmp_path: Path) -> None:
    """Driver, probe and outside capture count the same packets for every kind of operation."""
    count = 60
    tests = {
        "send_bw": (1, MTU, MTU + 1, 65536),
        "write_lat": (64,),
        "read_bw": (3 * MTU,),
        "atomic_lat": (8,),
    }
    benchmarks = "".join(benchmark("perftest", t, str(list(s)), n=count) for t, s in tests.items())
    benchmarks += TCP_LAT
    benchmarks += benchmark("iperf3", "tcp_bw", "[4096]", transport="tcp")
    outcome = runner.run(plan(benchmarks), testbed, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    table = Table(outcome.path)
    for test, sizes in tests.items():
        for size in sizes:
            here = {"test": test, "size": size}
            assert table.sum("probe.lost", **here) == 0
            for node in ("n1", "n2"):
                sent = table.one("driver.sent_pkts", **here, node=node)
                assert sent == table.sum("packets.tx", **here, node=node)
                received = table.one("driver.rcvd_pkts", **here, node=node)
                assert received == table.sum("packets.rx", **here, node=node)
                assert received == table.sum("packets.done", **here, node=node)
            frames = table.one("wire.frames", **here, kind="roce_v2")
            assert frames == table.sum("driver.sent_pkts", **here)
            assert frames == table.sum("driver.rcvd_pkts", **here)
    # N sends of S bytes give N * max(1, ceil(S / MTU)) data packets, in all three
    for size in tests["send_bw"]:
        expected = count * max(1, math.ceil(size / MTU))
        here = {"test": "send_bw", "size": size}
        assert table.one("wire.data_frames", **here) == expected
        assert table.one("packets.tx", **here, node="n1", kind="SEND") == expected
        assert table.one("driver.sent_pkts", **here, node="n1") == expected
        assert table.one("wire.payload_bytes", **here) == count * size
    # Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, ICRC 4
    assert table.one("wire.header_bytes", test="write_lat") == 74
    assert table.one("wire.header_bytes", test="send_bw", size=MTU) == 58
    # a pad of three bytes more
    assert table.one("wire.header_bytes", test="send_bw", size=1) == 61
    stages = table.frame.filter(pl.col("metric").str.starts_with("stage."))
    assert stages["value"].min() >= 0
    assert table.one("coverage.total", test="write_lat") == pytest.approx(
        table.one("coverage.stages", test="write_lat")
        + table.one("coverage.outside", test="write_lat")
    )


def test_every_packet_is_kept(testbed: Testbed, tmp_path: Path) -> None:
    """A plan with rxedump has each node's packets, as many as the driver counts."""
    count = 20
    text = plan(benchmark("perftest", "write_lat", "[64]", n=count), probes='["rxedump"]')
    outcome = runner.run(text, testbed, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    table = Table(outcome.path)
    (folder,) = outcome.path.glob("cells/*/64")
    for node in ("n1", "n2"):
        packets = read_pcapng(folder / f"{node}.pcapng")
        assert len(packets.sent()) == table.one("driver.sent_pkts", node=node) >= count
        assert len(packets.received()) == table.one("driver.rcvd_pkts", node=node)
        assert packets.session["node"] == node
        assert "lost: 0 packets" in (folder / f"rxedump.{node}.err").read_text()


def only_cell(text: str, testbed: Testbed, folder: Path) -> Outcome:
    """Measure the only cell of a plan."""
    (cell,) = plan(text, probes="[]").cells()
    return measure(cell, Rig.on(testbed), folder)


@contextlib.contextmanager
def background(server: Node, client: Node, port: int) -> Iterator[None]:
    """Run RoCE traffic next to the benchmark, from a node to another or to itself."""
    ends = [
        verbs.end(node, verbs_ports.find(node), TRANSPORTS["rxe-v2"]) for node in (server, client)
    ]
    argv = ("ib_write_bw", "-F", "-d", "rxe0", "-p", str(port), "-D", "600", "-s", "64", "-t", "4")
    serving = server.start((*argv, "-x", str(ends[0].gid_index)))
    wait = 'until grep -qE ":$1 0+:0000 0A " /proc/net/tcp; do sleep 0.05; done'
    server.run(("timeout", "180", "sh", "-c", wait, "sh", f"{port:04X}"), timeout=210)
    going = client.start((*argv, "-x", str(ends[1].gid_index), server.link.ipv4))
    try:
        deadline = time.monotonic() + 180
        counter = "/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"
        before = client.run(("cat", counter)).stdout
        while client.run(("cat", counter)).stdout == before:
            assert time.monotonic() < deadline, "the background traffic never began"
        yield
    finally:
        going.kill()
        serving.kill()


def test_rxe_beside_a_tcp_cell_is_noticed(testbed: Testbed, tmp_path: Path) -> None:
    """A benchmark with concurrent RoCE traffic has no valid result."""
    n1, n2 = testbed.nodes
    with background(n2, n1, 31001):
        outcome = only_cell(TCP_LAT, testbed, tmp_path)
    assert outcome.record["status"] == "error"
    assert outcome.record["error"]["kind"] == "proof"
    assert "n1 sent_pkts" in outcome.record["error"]["what"]


def test_driver_loopback_is_not_the_wire(testbed: Testbed, tmp_path: Path) -> None:
    """Two processes on one node move the driver's counters, and nothing crosses the link."""
    n1, _ = testbed.nodes
    with background(n1, n1, 31002):
        outcome = only_cell(benchmark("perftest", "send_bw", "[64]"), testbed, tmp_path)
    assert outcome.record["status"] == "error"
    assert outcome.record["error"]["kind"] == "proof"
    assert "RoCE v2 frames on the wire" in outcome.record["error"]["what"]


# the kernel's own default drops what has waited for 100 ms: here it need not wait so long
_CODEL = """
tc qdisc replace dev $0 root handle 1: tbf rate 100mbit burst 10k limit 10m
tc qdisc replace dev $0 parent 1: fq_codel target 100us interval 1ms
"""


def test_drops_before_the_wire_are_counted(testbed: Testbed, tmp_path: Path) -> None:
    """A queueing discipline that rocelab has not set drops packets, which are sent again."""
    n1, _ = testbed.nodes
    n1.run(("sh", "-ec", _CODEL, n1.link.netdev))
    try:
        text = benchmark("perftest", "send_bw", "[4096]", n=200)
        outcome = only_cell(text, testbed, tmp_path)
    finally:
        n1.run(("tc", "qdisc", "del", "dev", n1.link.netdev, "root"))
    assert outcome.record["status"] == "ok", outcome.record["error"]
    (step,) = outcome.record["steps"]
    sent = sum(each["rxe"]["sent_pkts"] for each in step["counters"].values())
    dropped = step["counters"]["n1"]["link"]["dropped"]
    assert dropped == sent - step["frames"]["roce_v2"] > 0


class ProbesAt(NullProgress):
    """Notes which processes of probes a node has when a step begins."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.seen = [self.there()]

    def there(self) -> list[str]:
        return self.node.run(("pgrep", "-x", "rxestat|rxecpu"), check=False).stdout.split()

    def step_started(self, cell: Cell, *, size: int) -> None:
        self.seen.append(self.there())


def test_probes_are_loaded_once_in_a_run(testbed: Testbed, tmp_path: Path) -> None:
    """By its first step; the same ones watch all others, and none is left."""
    asked = plan(benchmark("perftest", "send_bw", "[64, 256]"), probes='["rxestat", "rxecpu"]')
    progress = ProbesAt(testbed.nodes[1])
    outcome = runner.run(asked, testbed, tmp_path, progress=progress)
    assert outcome.exit_code is ExitCode.OK, outcome
    before, first, second = progress.seen
    assert (before, first) == ([], [])
    assert len(second) == 2
    (cell,) = (outcome.path / "cells").iterdir()
    for size in ("64", "256"):
        documents = {path.name for path in (cell / size).glob("rxe*.json")}
        assert documents == {f"{p}.{n}.json" for p in ("rxestat", "rxecpu") for n in ("n1", "n2")}
    assert progress.there() == []


def test_a_missing_program_is_a_cell_error(testbed: Testbed, tmp_path: Path) -> None:
    """Any unexpected output of a node is one clear error of one cell."""
    n2 = testbed.nodes[1]
    n2.run(("mv", "/usr/bin/qperf", "/usr/bin/qperf.away"))
    try:
        outcome = only_cell(TCP_LAT, testbed, tmp_path)
    finally:
        n2.run(("mv", "/usr/bin/qperf.away", "/usr/bin/qperf"))
    assert outcome.record["error"]["kind"] == "benchmark"
    assert "never listened" in outcome.record["error"]["what"]
    assert "qperf" in outcome.record["error"]["cause"]  # the shell's own words
    assert not outcome.node_died


class PanicAt(NullProgress):
    """Crashes a node's kernel when a given cell starts to measure."""

    def __init__(self, node: Node, cell: int) -> None:
        self.node = node
        self.left = cell
        self.crash: Process | None = None

    def step_started(self, cell: Cell, *, size: int) -> None:
        self.left -= 1
        if self.left == 0:
            self.crash = self.node.start(("sh", "-c", "echo c > /proc/sysrq-trigger"))


def test_a_node_that_dies_costs_its_cell(
    boot: Callable[..., AbstractContextManager[Testbed]], tmp_path: Path
) -> None:
    """Finished cells stay, the error shows the node's console, the exit code is the testbed's."""
    with boot(name="death", prepared=True) as testbed:
        panic = PanicAt(testbed.nodes[1], 2)
        outcome = runner.run(plan(TCP_LAT, repetitions=3), testbed, tmp_path, progress=panic)
        assert panic.crash is not None
        panic.crash.kill()  # its connection hangs: the crash took the shell with it
    assert outcome.exit_code is ExitCode.TESTBED
    assert outcome.status == "stopped"
    assert (outcome.ok, len(outcome.failed), outcome.missing) == (1, 1, 1)
    failed = outcome.path / "cells" / outcome.failed[0] / "cell.json"
    error = json.loads(failed.read_text())["error"]
    assert error["kind"] == "testbed"
    assert "n2 died" in error["what"]
    assert "sysrq" in error["cause"].lower() or "panic" in error["cause"].lower()
    assert Table(outcome.path).frame["repetition"].n_unique() == 1


def test_ctrl_c_and_resume(testbed: QemuTestbed, tmp_path: Path) -> None:
    """From the command line: an interrupted run leaves complete cells and resumes after them."""
    path = tmp_path / "p.toml"
    path.write_text(
        '[plan]\nname = "stop"\nrepetitions = 3\ntransports = ["tcp"]\n'
        '[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [64]\n'
    )
    command = [sys.executable, "-m", "rocelab", "run", "--name", testbed.spec.name]
    command += ["--out", str(tmp_path)]
    with subprocess.Popen([*command, str(path)], stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if re.search(r"cell 1/3 .*: ok", line):
                run.send_signal(signal.SIGINT)
                break
        run.stderr.read()
        assert run.wait(timeout=120) == ExitCode.INTERRUPTED
    (folder,) = tmp_path.glob("*-stop")
    finished = sorted(p.name for p in (folder / "cells").iterdir())
    assert finished == ["qperf-tcp_lat.tcp.r01"]
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"

    done = subprocess.run(
        [*command, "--resume", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 already finished" in done.stderr
    assert Table(folder).frame["repetition"].n_unique() == 3
    assert json.loads((folder / "run.json").read_text())["status"] == "complete"
