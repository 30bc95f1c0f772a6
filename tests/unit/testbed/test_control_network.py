# SPDX-License-Identifier: GPL-2.0-or-later
"""The control network of hosts: found where they share one, across routers, or named."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from ipaddress import ip_interface
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import CellError
from rocelab.testbed.control_network import (
    ControlEnd,
    HostAddresses,
    Reaches,
    addresses,
    candidates,
    choose,
)
from rocelab.testbed.node import Node


def host(name: str, ssh: str, **interfaces: str) -> HostAddresses:
    own = tuple((netdev, ip_interface(text)) for netdev, text in interfaces.items())
    return HostAddresses(name, "data0", ssh, own)


def nodes(*hosts: HostAddresses) -> list:
    return [SimpleNamespace(name=each.name) for each in hosts]


def only(*reached: str) -> Reaches:
    """Nodes reach these addresses, and no others."""
    said = "No route to host"
    return lambda nodes, _, address: ["" if address in reached else said] * len(nodes)


ALPHA = host(
    *("alpha", "172.30.1.15"), ctl0="172.30.1.15/24", data0="10.44.0.1/24", peer0="172.31.0.1/24"
)
BETA = host(
    *("beta", "172.30.2.15"), ctl0="172.30.2.15/24", data0="10.44.0.2/24", eno1="172.31.0.2/24"
)


def test_a_common_network_comes_before_the_address_that_ssh_reached() -> None:
    """The first host's SSH address need not be one that the second reaches."""
    ends = choose(nodes(ALPHA, BETA), (ALPHA, BETA), reaches=only("172.31.0.1", "10.44.0.1"))
    assert ends == (ControlEnd("peer0", "172.31.0.1"), ControlEnd("eno1", "172.31.0.2"))


def test_routed_networks_by_the_addresses_that_ssh_reached() -> None:
    left = host("left", "192.0.2.7", eth0="192.0.2.7/26")
    right = host("right", "198.51.100.9", eth0="198.51.100.9/26")
    ends = choose(nodes(left, right), (left, right), reaches=only("192.0.2.7"))
    assert [end.address for end in ends] == ["192.0.2.7", "198.51.100.9"]


def test_the_data_link_is_the_last_resort() -> None:
    netdevs = [ends[0].netdev for ends in candidates((ALPHA, BETA))]
    assert netdevs == ["peer0", "ctl0", "data0"]
    ends = choose(nodes(ALPHA, BETA), (ALPHA, BETA), reaches=only("10.44.0.1"))
    assert {end.netdev for end in ends} == {"data0"}


def test_ipv6_alone() -> None:
    left, right = (host(f"n{i}", f"fd00:1::{i}", eth0=f"fd00:1::{i}/64") for i in (1, 2))
    ends = choose(nodes(left, right), (left, right), reaches=only("fd00:1::1"))
    assert ends == (ControlEnd("eth0", "fd00:1::1"), ControlEnd("eth0", "fd00:1::2"))


def test_one_address_on_both_hosts_is_no_common_network() -> None:
    """Virtual machines behind QEMU's user network all have 10.0.2.15."""
    left, right = (host(name, "10.0.2.15", eth0="10.0.2.15/24") for name in ("left", "right"))
    assert list(candidates((left, right))) == []


def test_the_inventory_decides() -> None:
    both = (ALPHA, BETA)
    ends = choose(nodes(*both), both, ["10.44.0.0/24"], reaches=only("10.44.0.1"))
    assert {end.netdev for end in ends} == {"data0"}
    with pytest.raises(CellError, match=r"beta has no address on .* 172\.30\.1\.0/24"):
        choose(nodes(*both), both, ["172.30.1.0/24"], reaches=only("172.30.1.15"))


def test_hosts_are_asked_together() -> None:
    """Where a firewall drops everything, each waits for seconds."""
    others = [host(f"n{i}", "", peer0=f"172.31.0.{i}/24") for i in range(2, 9)]

    def reaches(asked: Sequence[Node], other: Node, address: str) -> list[str]:
        assert [node.name for node in asked] == [each.name for each in others]
        assert (other.name, address) == ("n1", "172.31.0.1")
        return [""] * len(asked)

    every = (host("n1", "", peer0="172.31.0.1/24"), *others)
    ends = choose(nodes(*every), every, reaches=reaches)
    assert [end.address for end in ends] == [f"172.31.0.{i}" for i in range(1, 9)]


def test_an_error_names_hosts_addresses_and_a_command() -> None:
    with pytest.raises(CellError) as caught:
        choose(nodes(ALPHA, BETA), (ALPHA, BETA), reaches=only())
    error = caught.value
    assert "beta reaches alpha" in error.what
    assert "beta to alpha at 172.31.0.1: No route to host" in error.cause
    assert "`ping`" in error.action
    assert "control = " in error.action


def info(local: str, prefix: int, scope: str) -> dict[str, object]:
    return {"local": local, "prefixlen": prefix, "scope": scope}


def test_loopback_and_link_local_addresses_do_not_count() -> None:
    listing = [
        {},  # an interface that is down
        {"ifname": "lo", "flags": ["LOOPBACK"], "addr_info": [info("10.9.9.9", 32, "global")]},
        {
            "ifname": "eth0",
            "flags": ["UP"],
            "addr_info": [info("fe80::1", 64, "link"), info("192.0.2.7", 26, "global")],
        },
    ]
    assert addresses(json.dumps(listing)) == (("eth0", ip_interface("192.0.2.7/26")),)


@given(st.text(max_size=60) | st.sampled_from(["[{}]", "{}", "[1]", "null", '[{"flags": 1}]']))
def test_any_listing_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(addresses(text), tuple)
