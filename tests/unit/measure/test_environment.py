# SPDX-License-Identifier: GPL-2.0-or-later
"""Parsing the output of nodes, recorded on Debian 13: GIDs, counters, devices, environment."""

from __future__ import annotations

from ipaddress import IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.measure import counters, environment
from rocelab.testbed import gid, verbs_ports

HERE = Path(__file__).parents[1] / "data"


def recorded(name: str) -> str:
    return (HERE / name).read_text()


def test_gids_of_a_real_node() -> None:
    gids = gid.parse(recorded("linux-6.12-gids.txt"))
    assert [(g.index, g.type) for g in gids] == [(0, "RoCE v2"), (1, "RoCE v2")]
    chosen = gid.choose(gids, "RoCE v2", "10.44.0.1")
    assert chosen
    assert chosen.index == 1
    assert chosen.address == IPv6Address("::ffff:10.44.0.1")


def test_gids_are_chosen_by_type_and_address_not_by_index() -> None:
    """RoCE v1 renumbers GIDs: this is the table of a device with both versions."""
    base = "/sys/class/infiniband/rxe0/ports/1"
    link_local, mapped = "fe80::5054:ff:fe44:1", "0000:0000:0000:0000:0000:ffff:0a2c:0001"
    listing = "".join(
        f"{base}/gid_attrs/types/{i}:{kind}\n{base}/gids/{i}:{address}\n"
        for i, (address, kind) in enumerate(
            (a, k) for a in (link_local, mapped) for k in ("IB/RoCE v1", "RoCE v2")
        )
    )
    gids = gid.parse(listing)
    for gid_type, index in (("IB/RoCE v1", 2), ("RoCE v2", 3)):
        chosen = gid.choose(gids, gid_type, "10.44.0.1")
        assert chosen
        assert chosen.index == index
    assert gid.choose(gids, "RoCE v2", "10.44.0.9") is None


@given(st.text())
def test_any_listing_is_read(listing: str) -> None:
    gid.parse(listing)
    counters.parse(listing)
    environment.cpu(listing)
    environment.module_ids(listing)
    environment.nic_driver(listing)
    environment.sysctls(listing)
    environment.crc32_drivers(listing)
    environment.packages(listing)


def test_counters_of_a_real_node() -> None:
    values = counters.parse(recorded("linux-6.12-counters.txt"))
    assert {"sent_pkts", "rcvd_pkts", "duplicate_request"} <= set(values.rxe)
    assert {"rx_packets", "tx_bytes", "rx_dropped"} <= set(values.netdev)
    assert "lifespan" not in values.rxe


def test_verbs_ports() -> None:
    listing = recorded("iproute2-6.15.0-rdma-link.json")
    assert verbs_ports.on_interfaces(listing) == {("rxe0", 1): "data0"}
    # a name that would point to another path is refused
    hostile = listing.replace("rxe0", "../../proc")
    assert verbs_ports.on_interfaces(hostile) == {}
    for text in ("{}", "", "[1]x"):
        with pytest.raises(ValueError):  # noqa: PT011  # json's own, or ours
            verbs_ports.on_interfaces(text)


def test_environment_of_a_real_node() -> None:
    assert environment.cpu(recorded("linux-6.12-cpuinfo.txt")) == {
        "model": "QEMU TCG CPU version 2.5+",
        "count": 1,
    }
    assert environment.crc32_drivers(recorded("linux-6.12-crypto.txt")) == [
        "crc32-pclmul",
        "crc32-generic",
    ]
    assert environment.nic_driver(recorded("ethtool-6.14.2-i.txt")) == "virtio_net"
    offloads = environment.offloads(recorded("ethtool-6.14.2-k.json"))
    assert offloads["generic-receive-offload"] is True
    assert offloads["tcp-segmentation-offload"] is False
    values = environment.sysctls(recorded("linux-6.12-sysctl.txt"))
    assert values["net.ipv4.tcp_congestion_control"] == "cubic"
    assert set(values) == set(environment.SYSCTLS)
    ids = environment.module_ids(recorded("linux-6.12-module.txt"))
    assert ids["version"] is not None
    assert ids["version"].startswith("rocelab-")
    assert ids["srcversion"]


def test_missing_output_gives_none() -> None:
    assert environment.module_ids("") == {"version": None, "srcversion": None}
    assert environment.cpu("") == {"model": None, "count": None}
    assert environment.nic_driver("") is None
    assert set(environment.sysctls("").values()) == {None}
    assert environment.packages("perftest\t25.01\nnothing\t\n") == {"perftest": "25.01"}
