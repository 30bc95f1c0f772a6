# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider ssh without a network: command lines, and what a host may say."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from rocelab.errors import TestbedError
from rocelab.hosts import source
from rocelab.hosts.before import Before
from rocelab.node.ssh import SshTarget
from rocelab.provider.ssh import link

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
