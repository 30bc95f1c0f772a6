# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider ssh without a network: command lines, and what a host may say."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fake_testbed import FakeProcess, pcap, roce_v2
from rocelab.errors import TestbedError
from rocelab.hosts import source
from rocelab.hosts.before import Before
from rocelab.node import Completed, DataLink
from rocelab.node.ssh import SshTarget
from rocelab.provider.ssh import link
from rocelab.provider.ssh.testbed import SshTestbed
from rocelab.run import frames

CONTROL = Path("/run/x/n1")
LINK = {
    "ifname": "eth1",
    "flags": ["BROADCAST", "UP"],
    "mtu": 9000,
    "address": "52:54:00:00:00:01",
    "addr_info": [
        {"family": "inet6", "local": "fe80::1", "scope": "link"},
        {"family": "inet", "local": "10.0.0.1", "scope": "global"},
    ],
}


def test_the_users_ssh_decides_what_the_inventory_leaves_open() -> None:
    options = SshTarget("node1", CONTROL).options()
    assert "-F" not in options
    assert "-p" not in options
    assert "-l" not in options
    assert not any(option.startswith("Identit") for option in options)
    assert "StrictHostKeyChecking=yes" in options
    assert "BatchMode=yes" in options


@dataclass
class Host:
    """A host on which linktap captures `heard`; it notes how it was started."""

    name: str
    heard: bytes
    link: DataLink = field(default=DataLink("eth1", "10.0.0.1", "02:00:00:00:00:01", 1500))
    taps: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def root(self) -> Host:
        return self

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        return Completed(tuple(argv), 0, f"/tmp/{self.name}.pcap" if "mktemp" in argv else "", "")

    def start(self, argv: Sequence[str]) -> FakeProcess:
        self.taps.append(tuple(argv))
        return FakeProcess(tuple(argv))

    def get(self, remote: str, local: Path) -> None:
        assert remote == f"/tmp/{self.name}.pcap"
        local.write_bytes(self.heard)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_what_the_second_host_says_to_the_third_is_captured(tmp_path: Path, count: int) -> None:
    """Of two hosts the first hears all; of more each hears what arrives, and it is put together."""
    frame, _ = roce_v2(0x04, 64)
    hosts = [Host(f"n{i}", pcap([(frame, len(frame))] * i)) for i in range(1, count + 1)]
    testbed = SshTestbed(hosts, ExitStack())  # type: ignore[arg-type]
    with testbed.capture(tmp_path / "wire.pcap", snaplen=128):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["wire.pcap"]
    seen = frames.count(tmp_path / "wire.pcap")
    started = [tap for host in hosts for tap in host.taps]
    if count == 2:
        assert seen.roce_v2 == 1
        assert [tap[-3:] for tap in started] == [("-s", "128", "eth1")]
    else:
        assert seen.roce_v2 == sum(range(count + 1))
        assert [tap[-5:] for tap in started] == [("-s", "128", "-Q", "in", "eth1")] * count
    assert ("every host" in testbed.environment()["witness"]) == (count > 2)


def test_only_roots_commands_go_through_sudo() -> None:
    target = SshTarget("node1", CONTROL, user="me", is_root=False)
    assert target.command(["uname", "-r"])[-1] == "uname -r"
    assert (
        target.as_root().command(["rmmod", "a b; reboot"])[-1] == "sudo -n -- rmmod 'a b; reboot'"
    )
    assert target.as_root().as_root() == target.as_root()
    root = SshTarget("node1", CONTROL, user="root")
    assert root.as_root() is root


def test_the_data_interface_as_the_host_tells_it() -> None:
    found = link.parse(json.dumps([LINK]), "eth1", host="n1")
    assert (found.ipv4, found.mac, found.mtu) == ("10.0.0.1", "52:54:00:00:00:01", 9000)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ifname": "eth2"}, "does not tell"),
        ({"flags": []}, "is down"),
        ({"addr_info": []}, "has no IPv4 address"),
        ({"addr_info": [{"family": "inet", "local": "$(reboot)", "scope": "global"}]}, "not tell"),
        ({"address": "; reboot"}, "does not tell"),
        ({"mtu": None}, "does not tell"),
    ],
)
def test_what_a_host_says_is_read_as_addresses_or_not_at_all(
    changed: dict[str, object], said: str
) -> None:
    with pytest.raises(TestbedError, match=said):
        link.parse(json.dumps([{**LINK, **changed}]), "eth1", host="n1")


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[1]", '[{"ifname": "eth1"}]'])
def test_a_host_that_says_nothing_of_use(text: str) -> None:
    with pytest.raises(TestbedError, match="does not tell"):
        link.parse(text, "eth1", host="n1")


def test_a_kernel_release_leads_nowhere_else() -> None:
    assert "/updates/rdma_rxe.ko" in Before("6.12.1+deb13-amd64", None, (), ()).touched[0]
    for release in ("../../etc", "a/b", "", ".."):
        with pytest.raises(ValueError, match="strange kernel release"):
            Before(release, None, (), ())


def test_the_archive_holds_what_a_build_needs_and_no_more(tmp_path: Path) -> None:
    archive = tmp_path / "source.tar.gz"
    source.pack(archive)
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        assert {"kernel/Makefile", "ebpf/Makefile", "kernel/src/rxe_v1.c"} <= set(names)
        assert all(name.split("/")[0] in {"kernel", "ebpf", "tools"} for name in names)
        assert all(info.isfile() or info.isdir() for info in tar.getmembers())


def test_the_network_that_ssh_comes_by() -> None:
    address = {"local": "192.0.2.7", "prefixlen": 26}
    every = json.dumps([{**LINK, "addr_info": [address]}, {**LINK, "addr_info": []}])
    assert link.network(every, "192.0.2.1 5000 192.0.2.7 22", host="n1") == "192.0.2.0/26"
    for came in ("", "a b c d", "192.0.2.1 5000 192.0.2.9 22"):
        with pytest.raises(TestbedError, match="by which network"):
            link.network(every, came, host="n1")
