# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider ssh without a network: command lines, and the parsing of what a host prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import fake_host
from fake_host import LINK
from fake_testbed import FakeProcess, pcap, roce_v2
from polling import wait_until
from rocelab.errors import TestbedError
from rocelab.plans.catalog import TRANSPORTS
from rocelab.record import frames
from rocelab.testbed import linktap
from rocelab.testbed.hosts import host_build
from rocelab.testbed.hosts.host_state import HostState
from rocelab.testbed.hosts.own_benchmarks import OWN_BENCHMARKS
from rocelab.testbed.node import Completed, DataLink
from rocelab.testbed.node.ssh_node import SshTarget
from rocelab.testbed.ssh import data_interface as link
from rocelab.testbed.ssh import inventory
from rocelab.testbed.ssh.connect import connect
from rocelab.testbed.ssh.ssh_testbed import SshTestbed

CONTROL = Path("/run/x/n1")


def test_ssh_decides_what_the_inventory_leaves_out() -> None:
    options = SshTarget("node1", CONTROL).options()
    assert "-F" not in options
    assert "-p" not in options
    assert "-l" not in options
    assert not any(option.startswith("Identit") for option in options)
    assert "StrictHostKeyChecking=yes" in options
    assert "BatchMode=yes" in options


@dataclass
class Host:
    """A host on which linktap captures `captured`; records how linktap was started."""

    name: str
    captured: bytes
    link: DataLink = field(default=DataLink("eth1", "10.0.0.1", "02:00:00:00:00:01", 1500))
    taps: list[tuple[str, ...]] = field(default_factory=list)
    lost: int = 0
    adapter: str = ""
    adapter_port: int = 0
    has_root: bool = True

    @property
    def root(self) -> Host:
        return self

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        return Completed(tuple(argv), 0, f"/tmp/{self.name}.pcap" if "mktemp" in argv else "", "")

    def start(self, argv: Sequence[str], *, lifeline: bool = False) -> FakeProcess:
        self.taps.append(tuple(argv))
        said = f"linktap: {self.lost} frames were lost\n" if self.lost else ""
        return FakeProcess(tuple(argv), status=int(self.lost > 0), said=said)

    def get(self, remote: str, local: Path) -> None:
        assert remote == f"/tmp/{self.name}.pcap"
        local.write_bytes(self.captured)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_traffic_between_any_two_hosts_is_captured(tmp_path: Path, count: int) -> None:
    """One of two hosts captures everything; each of more captures what it receives."""
    frame, _ = roce_v2(0x04, 64)
    hosts = [Host(f"n{i}", pcap([(frame, len(frame))] * i)) for i in range(1, count + 1)]
    testbed = SshTestbed(hosts, ExitStack())  # type: ignore[arg-type]
    with testbed.capture(tmp_path / "wire.pcap", snaplen=128):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["wire.pcap"]
    seen = frames.count(tmp_path / "wire.pcap")
    started = [tap for host in hosts for tap in host.taps]
    bounds = ("-s", "128", "-C", str(linktap.MAX_BYTES))
    if count == 2:
        assert seen.roce_v2 == 1
        assert [tap[3:] for tap in started] == [(*bounds, "eth1")]
    else:
        assert seen.roce_v2 == sum(range(count + 1))
        assert [tap[3:] for tap in started] == [(*bounds, "-Q", "in", "eth1")] * count
    assert ("every host" in testbed.environment()["witness"]) == (count > 2)


@pytest.mark.parametrize(("lost", "expected"), [((3, 7), 3), ((3, 0, 4), 7)])
def test_frames_that_a_busy_capture_lost_are_counted(
    tmp_path: Path, lost: tuple[int, ...], expected: int
) -> None:
    frame, _ = roce_v2(0x04, 64)
    hosts = [Host(f"n{i}", pcap([(frame, len(frame))]), lost=each) for i, each in enumerate(lost)]
    with SshTestbed(hosts, ExitStack()).capture(tmp_path / "wire.pcap") as captured:  # type: ignore[arg-type]
        assert captured.lost == 0
    assert captured.lost == expected
    assert frames.count(tmp_path / "wire.pcap").frames == (1 if len(lost) == 2 else 3)


def test_a_transport_with_an_interface_of_its_own(tmp_path: Path) -> None:
    """Its nodes are those hosts with that interface, and the capture is there."""
    frame, _ = roce_v2(0x04, 64)
    hosts = [Host(f"n{i}", pcap([(frame, len(frame))])) for i in (1, 2)]
    others = [
        replace(host, taps=[], link=DataLink("eth2", "10.0.1.1", "02:00:00:00:00:02", 9000))
        for host in hosts
    ]
    testbed = SshTestbed(hosts, ExitStack(), (), {"rxe": others})  # type: ignore[arg-type, dict-item]
    assert testbed.over(TRANSPORTS["tcp"]) is testbed
    over = testbed.over(TRANSPORTS["rxe-v1"])
    assert [node.link.netdev for node in over.nodes] == ["eth2", "eth2"]
    with over.capture(tmp_path / "wire.pcap"):
        pass
    assert others[0].taps[0][-1] == "eth2"
    assert not hosts[0].taps
    described = testbed.environment()["transports"]["rxe"]
    assert (described["n1"]["netdev"], described["n1"]["mtu"]) == ("eth2", 9000)


@pytest.fixture
def without_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `ssh` to a host whose user is not root; the file says whether its `sudo` was asked."""
    asked = tmp_path / "asked"
    refuse = f"echo >>{asked}; echo 'sudo: a password is required' >&2; exit 1"
    fake_host.install(tmp_path, monkeypatch, {"id": "echo 1000", "sudo": refuse})
    return asked


def test_a_host_may_refuse_root_where_nothing_needs_it(without_root: Path) -> None:
    host = inventory.Host("n1", "node1", "eth1")
    with connect([host], root_for="") as (node,):
        assert not node.has_root
        assert node.run(["echo", "on"]).stdout == "on\n"
        with pytest.raises(TestbedError, match="needs root on node1") as caught:
            _ = node.root
    assert caught.value.cause == "sudo: a password is required"
    assert without_root.exists()


def test_a_host_that_refuses_root_is_refused_where_something_needs_it(without_root: Path) -> None:
    host = inventory.Host("n1", "node1", "eth1")
    with (
        pytest.raises(TestbedError, match="root on n1, as needed for rxe-v2 and rxestat") as caught,
        connect([host], root_for="rxe-v2 and rxestat"),
    ):
        pass
    assert "probes = []" in caught.value.action


def test_sudo_is_not_tried_where_the_inventory_forbids_it(without_root: Path) -> None:
    """On many sites, a refused sudo is reported to the administrators."""
    host = inventory.Host("n1", "node1", "eth1", root=False)
    with connect([host], root_for="") as (node,):
        assert not node.has_root
    assert not without_root.exists()


def test_nothing_is_captured_without_root(tmp_path: Path) -> None:
    hosts = [Host(f"n{i}", b"", has_root=i == 1) for i in (1, 2)]
    testbed = SshTestbed(hosts, ExitStack())  # type: ignore[arg-type]
    assert testbed.missing == "a capture needs root on n2"
    with testbed.capture(tmp_path / "wire.pcap") as captured:
        assert captured.missing == testbed.missing
    assert not list(tmp_path.iterdir())
    assert testbed.environment()["witness"].startswith("none: ")


def test_paths_reach_ssh_as_they_are() -> None:
    """With blanks, quotes and %, which mean something in ssh's configuration."""
    odd = Path('/a b/100%/"quoted"\\')
    target = SshTarget("h", odd, identity=odd, known_hosts=odd, configured=False)
    done = subprocess.run(
        ["ssh", "-G", *target.options(), "h"], capture_output=True, text=True, check=True
    )
    settings = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert settings["controlpath"] == settings["userknownhostsfile"] == str(odd)
    # ssh expands this one only when it opens the file
    assert settings["identityfile"].replace("%%", "%") == str(odd)


def test_only_root_commands_use_sudo() -> None:
    target = SshTarget("node1", CONTROL, user="me", is_root=False)
    assert target.command(["uname", "-r"])[-1] == "uname -r"
    assert (
        target.as_root().command(["rmmod", "a b; reboot"])[-1] == "sudo -n -- rmmod 'a b; reboot'"
    )
    assert target.as_root().as_root() == target.as_root()
    root = SshTarget("node1", CONTROL, user="root")
    assert root.as_root() is root


def test_the_data_interface_is_parsed() -> None:
    interface = link.parse(json.dumps([LINK]), "eth1", host="n1")
    assert (interface.ipv4, interface.mac, interface.mtu) == ("10.0.0.1", "52:54:00:00:00:01", 9000)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ifname": "eth2"}, "cannot find the interface eth1 on n1"),
        ({"flags": []}, "is down"),
        ({"addr_info": []}, "has no IPv4 address"),
        ({"addr_info": [{"family": "inet", "local": "$(reboot)", "scope": "global"}]}, "cannot"),
        ({"address": "; reboot"}, "cannot find"),
        ({"mtu": None}, "cannot find"),
    ],
)
def test_malformed_addresses_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(TestbedError, match=message):
        link.parse(json.dumps([{**LINK, **changed}]), "eth1", host="n1")


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[1]", '[{"ifname": "eth1"}]'])
def test_unusable_output_of_ip_is_an_error(text: str) -> None:
    with pytest.raises(TestbedError, match="cannot find the interface"):
        link.parse(text, "eth1", host="n1")


def test_a_kernel_release_cannot_point_outside_its_folder() -> None:
    assert "/updates/rdma_rxe.ko" in HostState("6.12.1+deb13-amd64", None, (), ()).touched[0]
    for release in ("../../etc", "a/b", "", ".."):
        with pytest.raises(ValueError, match="strange kernel release"):
            HostState(release, None, (), ())


def test_our_benchmarks_are_built_from_the_source_archive(tmp_path: Path) -> None:
    """Their Makefiles find there what they include."""
    archive = tmp_path / "src.tar.gz"
    host_build.pack_sources(archive)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    for benchmark in OWN_BENCHMARKS:
        make = [
            "make",
            "-n",
            "-C",
            str(tmp_path / benchmark.folder),
            f"O={tmp_path}/out",
            "install",
        ]
        said = subprocess.run(make, capture_output=True, text=True, check=True).stdout
        assert f"bin/{benchmark.name}" in said


def test_the_source_archive_has_only_what_a_build_needs(tmp_path: Path) -> None:
    archive = tmp_path / "source.tar.gz"
    host_build.pack_sources(archive)
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        assert {"kernel/Makefile", "ebpf/Makefile", "tables/stages.csv"} <= set(names)
        assert all(name.split("/")[0] in {"kernel", "ebpf", "tables", "tools"} for name in names)
        assert all(info.isfile() or info.isdir() for info in tar.getmembers())


CONNECTED = """
import sys
from pathlib import Path
from rocelab.testbed.node.ssh_node import SshTarget
from rocelab.testbed.ssh import connect
folder = Path(sys.argv[1])
with connect._disconnecting(folder, [SshTarget("node1", folder / "n1")]):
    print("connected", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kill", [True, False])
def test_the_connections_folder_goes_with_its_process(tmp_path: Path, kill: bool) -> None:
    """Even after SIGKILL, and whatever characters its path has."""
    folder = tmp_path / "with blank and %h"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", CONNECTED, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"connected\n"
        assert folder.exists()
        if kill:
            process.kill()
    wait_until("the folder goes", lambda: not folder.exists())
