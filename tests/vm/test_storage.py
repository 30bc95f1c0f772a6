# SPDX-License-Identifier: GPL-2.0-or-later
"""fio over NVMe-oF and NFS: transports proven by the wire, nothing left, also after a failure."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from killed_run import Killed
from polling import wait_until
from rocelab.errors import ExitCode
from rocelab.measure import pair, runner
from rocelab.plans import plan_file
from rocelab.record import results_table
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import add_device, offer_roce_v1, remove_device
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed

_HEAD = """
[plan]
name = "disks"
repetitions = 1
probes = ["rxestat"]
transports = ["tcp", "rxe-v1", "rxe-v2"]
"""
_DISK = """
[[benchmark]]
tool = "fio"
test = "{test}"
sizes = [4096]
iterations = 50
depth = {depth}
transports = {transports}
"""
_FILES = """
ls -d /run/rocelab-file.* /sys/kernel/config/rdma_cm/* /sys/kernel/config/nvmet/*/* \
	/sys/kernel/config/nullb/rocelab* /dev/nvme* /proc/fs/nfsd/threads 2>/dev/null
grep -E 'nfs|rocelab' /proc/mounts
"""
_STATE = _FILES + "lsmod | cut -d' ' -f1 | sort\n"
KINDS = {"tcp": "tcp", "rxe-v1": "roce_v1", "rxe-v2": "roce_v2"}


def disks(*benchmarks: tuple[str, Sequence[str]], depth: int = 1) -> str:
    """A plan of these tests, each over some transports."""
    return _HEAD + "".join(
        _DISK.format(test=test, transports=json.dumps(transports), depth=depth)
        for test, transports in benchmarks
    )


def state(nodes: Sequence[Node], what: str = _STATE) -> list[str]:
    return [node.run(("sh", "-c", what), check=False).stdout for node in nodes]


def check(run: Path, *benchmarks: tuple[str, Sequence[str]]) -> None:
    """Each benchmark has its latency and its wire, and over rxe its stages."""
    table = results_table.load(run)
    for test, transports in benchmarks:
        for transport in transports:
            rows = table.filter(transport=transport, test=test)
            assert rows.filter(metric="latency.samples")["value"].item() == 50
            low, high = (rows.filter(metric=f"latency.{f}")["value"].item() for f in ("min", "max"))
            assert 0 < low <= rows.filter(metric="latency.mean")["value"].item() <= high
            assert rows.filter(metric="wire.payload_bytes")["value"].item() >= 50 * 4096
            for kind in KINDS.values():
                frames = rows.filter(metric="wire.frames", kind=kind)["value"].item()
                assert (frames > 0) == (kind == KINDS[transport]) or kind == "tcp"
            if transport != "tcp":
                of = rows.filter(metric="stage.tx.icrc.mean")["kind"].unique().to_list()
                assert "SEND" in of
                # the server writes into the client's memory what the client reads; NFS also reads
                # attributes so
                if test.endswith("read") or test.startswith("nvme_"):
                    assert ("RDMA_WRITE" in of) == test.endswith("read")


@pytest.fixture
def both(testbed: QemuTestbed) -> Iterator[QemuTestbed]:
    """Give the devices GIDs of both RoCE versions."""
    offer_roce_v1(testbed.nodes)
    yield testbed
    for node in testbed.nodes:
        remove_device(node)
        add_device(node)


def measured(testbed: QemuTestbed, out: Path, *benchmarks: tuple[str, Sequence[str]]) -> None:
    """The plan succeeds and leaves the nodes as they were."""
    before = state(testbed.nodes)
    outcome = runner.run(plan_file.from_toml(disks(*benchmarks), "disks.toml"), testbed, out)
    assert outcome.exit_code is ExitCode.OK, outcome
    assert state(testbed.nodes) == before
    check(outcome.path, *benchmarks)


def test_a_disk_by_nvme_over_each_transport(both: QemuTestbed, tmp_path: Path) -> None:
    measured(both, tmp_path, ("nvme_randread", ["tcp", "rxe-v1", "rxe-v2"]))


def test_a_file_by_nfs(testbed: QemuTestbed, tmp_path: Path) -> None:
    measured(testbed, tmp_path, ("nfs_randread", ["tcp", "rxe-v2"]))


@pytest.mark.long
def test_every_access(both: QemuTestbed, tmp_path: Path) -> None:
    every = ["tcp", "rxe-v1", "rxe-v2"]
    tests = [f"{p}_{a}" for p in ("nvme", "nfs") for a in ("read", "write", "randwrite")]
    measured(both, tmp_path, *((test, every) for test in tests))


@pytest.mark.long
@pytest.mark.parametrize(
    ("test", "missing", "said"),
    [
        ("nvme_read", "nvmet_rdma", "n2 cannot load the modules"),
        ("nfs_read", "nfsv4", "n1 cannot load the modules"),
    ],
)
def test_a_missing_module_is_named(
    testbed: QemuTestbed, tmp_path: Path, test: str, missing: str, said: str
) -> None:
    """What was set up before is gone, too."""
    before = state(testbed.nodes)
    hide = "for f in $(modinfo -n $1); do mv $f $f.hidden; done; depmod"
    show = "f=$(find /lib/modules -name '*.hidden'); mv $f ${f%.hidden}; depmod"
    for node in testbed.nodes:
        node.run(("sh", "-c", hide, "sh", missing), timeout=300)
    try:
        plan = plan_file.from_toml(disks((test, ["rxe-v2"])), "disks.toml")
        outcome = runner.run(plan, testbed, tmp_path)
    finally:
        for node in testbed.nodes:
            node.run(("sh", "-c", show), timeout=300)
    (record,) = outcome.path.glob("cells/*/cell.json")
    error = json.loads(record.read_text())["error"]
    assert said in error["what"]
    assert missing in error["cause"]
    assert state(testbed.nodes) == before


@pytest.mark.long
def test_a_server_of_the_machine_is_left_alone(testbed: QemuTestbed, tmp_path: Path) -> None:
    """An NFS server that runs is not touched: the cell is an error."""
    server = testbed.nodes[1]
    start = (
        "modprobe nfsd; mount -t nfsd nfsd /proc/fs/nfsd; "
        "echo -3 +4 >/proc/fs/nfsd/versions; "  # version 3 would need rpcbind
        "echo tcp 2049 >/proc/fs/nfsd/portlist; echo 2 >/proc/fs/nfsd/threads"
    )
    server.run(("sh", "-c", start))
    try:
        plan = plan_file.from_toml(disks(("nfs_read", ["tcp"])), "disks.toml")
        outcome = runner.run(plan, testbed, tmp_path)
        assert server.run(("cat", "/proc/fs/nfsd/threads")).stdout == "2\n"
        assert server.run(("cat", "/proc/fs/nfsd/portlist")).stdout.startswith("tcp 2049")
    finally:
        stop = (
            "echo 0 >/proc/fs/nfsd/threads; umount /proc/fs/nfsd; "
            "rmmod nfsd lockd grace nfs_acl auth_rpcgss sunrpc"
        )
        server.run(("sh", "-c", stop), check=False)
    (record,) = outcome.path.glob("cells/*/cell.json")
    assert "runs there already" in json.loads(record.read_text())["error"]["cause"]


@pytest.mark.long
@pytest.mark.parametrize("test", ["nvme_read", "nfs_read"])
def test_a_failed_fio_leaves_nothing(
    testbed: QemuTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str
) -> None:
    """The disk is taken away while the client uses it.

    The kernel keeps an NFS connection whose server has gone, and with it the client's modules.
    """
    what = _STATE if test == "nvme_read" else _FILES
    before = state(testbed.nodes, what)
    good = pair.run

    def failing(tool, job, client, server, **words):
        server.run(("sh", f"{job.folder}/remote_disk.sh", "down"), check=False)
        return good(tool, job, client, server, **words)

    monkeypatch.setattr(pair, "run", failing)
    plan = plan_file.from_toml(disks((test, ["rxe-v2"])) + "timeout = 20\n", "disks.toml")
    outcome = runner.run(plan, testbed, tmp_path)
    assert outcome.failed
    assert state(testbed.nodes, what) == before


@pytest.mark.long
@pytest.mark.parametrize("test", ["nvme_read", "nfs_read"])
def test_a_killed_run_leaves_nothing(testbed: QemuTestbed, tmp_path: Path, test: str) -> None:
    """SIGKILL while fio runs."""
    before = state(testbed.nodes)
    text = disks((test, ["rxe-v2"])).replace("iterations = 50", "iterations = 1000000")
    (tmp_path / "plan.toml").write_text(text)
    where = ("--name", testbed.spec.name)
    whole = Killed(testbed.nodes, tmp_path / "plan.toml", tmp_path, where)
    whole.before = whole.traces()
    fio = ("sh", "-c", 'pgrep -x fio && test -s "$(ls /run/rocelab-file.*/undo)"')
    with whole.start("killed") as run:
        wait_until(
            "fio runs",
            lambda: not testbed.nodes[0].run(fio, check=False).returncode,
            seconds=600,
        )
        run.process.send_signal(signal.SIGKILL)
        run.check_nothing_left()
    assert state(testbed.nodes) == before
