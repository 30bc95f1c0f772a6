# SPDX-License-Identifier: GPL-2.0-or-later
"""Transports of adapters: the names of drivers' counters, and what they prove.

Listings are public output of real adapters: mlx5's `ethtool -S` in
github.com/isc-projects/ethq/issues/8 (its vPort names in elastic/beats/issues/45615), mlx4_en's in
ethq/issues/21, bnx2x's in ethq/issues/6; bnxt_re's counters in prometheus/procfs/pull/675; i40iw's
in prometheus/node_exporter/issues/966; hfi1's in netdata/netdata/pull/9091 and
node_exporter/issues/2023. irdma's names are those of its driver (Linux, drivers/infiniband/hw).
"""

from __future__ import annotations

import json
from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_outputs import several
from rocelab.errors import CellError
from rocelab.measure import counters, environment, results
from rocelab.measure.counters import Counters
from rocelab.measure.transport_proof import prove
from rocelab.plans import plan_file
from rocelab.plans.benchmarks import perftest
from rocelab.plans.benchmarks.mpi import recipe
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.benchmarks.tool import End, Job, Measurement
from rocelab.plans.catalog import TESTS, TRANSPORTS
from rocelab.record import adapter
from rocelab.record.frames import Frames
from rocelab.testbed import gid, verbs, verbs_ports
from rocelab.testbed.node import Completed, DataLink
from rocelab.testbed.node.endpoint import Endpoint
from rocelab.testbed.ssh import data_interface as link
from rocelab.testbed.verbs_ports import Ports, VerbsPort

MLX5 = """NIC statistics:
     rx_packets: 845320277
     rx_bytes: 2195783498134
     tx_packets: 896117891
     tx_vport_rdma_unicast_packets: 1000
     tx_vport_rdma_unicast_bytes: 4194304
     rx_vport_rdma_unicast_packets: 900
"""
BNX2X = """NIC statistics:
     [0]: rx_bytes: 209487403324
     [0]: rx_ucast_packets: 194386668
"""
MLX4_EN = """     rx_packets: 555096842386    
     tx_packets: 1543869000751   
"""  # noqa: W291  # as it was printed
# port counters that bnxt_re refuses to read are not in grep's output; i40iw's have no number
BNXT_RE = """/sys/class/infiniband/bnxt_re0/ports/1/hw_counters/rx_bytes:7521781137064
/sys/class/infiniband/bnxt_re0/ports/1/hw_counters/tx_pkts:12
"""
I40IW = (
    "/sys/class/infiniband/i40iw0/ports/1/counters/port_rcv_packets:N/A (no PMA)\n"
    "/sys/class/infiniband/i40iw0/ports/1/counters/link_downed:N/A (no PMA)\n"
    "/sys/class/infiniband/i40iw0/ports/1/hw_counters/ip4OutPkts:77\n"
)
HFI1 = """/sys/class/infiniband/hfi1_0/ports/1/hw_counters/DmaWait:50646
/sys/class/infiniband/hfi1_0/ports/1/hw_counters/lifespan:10
/sys/class/infiniband/hfi1_0/ports/1/hw_counters/RcAcks:19918731
/sys/class/infiniband/hfi1_0/ports/1/hw_counters/SwLinkUp,32:1
/sys/class/infiniband/hfi1_0/ports/1/hw_counters/TxPkt:5
/sys/class/infiniband/hfi1_0/ports/1/counters/port_xmit_packets:9
/sys/class/infiniband/hfi1_0/ports/1/counters/port_xmit_data:100
"""


def of_adapter(listing: str) -> dict[str, int]:
    return dict(counters.parse(listing).adapter)


def test_ethtools_statistics_of_real_drivers() -> None:
    assert adapter.ethtool_statistics(MLX5)["tx_packets"] == 896117891
    assert adapter.ethtool_statistics(MLX4_EN) == {
        "rx_packets": 555096842386,
        "tx_packets": 1543869000751,
    }
    assert adapter.ethtool_statistics(BNX2X) == {}
    assert adapter.ethtool_statistics("no stats available\n") == {}


def test_each_driver_says_by_its_own_names_what_it_sent() -> None:
    mlx5 = {f"ethtool.{n}": v for n, v in adapter.ethtool_statistics(MLX5).items()}
    assert adapter.sent_and_received(mlx5) == adapter.Moved(1000, 900, 4194304)
    assert adapter.sent_and_received(of_adapter(BNXT_RE)).sent == 12
    assert adapter.sent_and_received(of_adapter(I40IW)) == adapter.Moved(77, None, None)
    hfi1 = of_adapter(HFI1)
    assert "hw.lifespan" not in hfi1
    assert not any("," in name for name in hfi1)
    # the port's data are counted in words of 32 bits
    assert adapter.sent_and_received(hfi1) == adapter.Moved(5, None, 400)
    # a counter that never increments does not hide another
    assert adapter.sent_and_received({"hw.tx_pkts": 0, "port.port_xmit_packets": 3}).sent == 3
    assert adapter.sent_and_received({}) == adapter.Moved(None, None, None)


@given(st.text())
def test_any_listing_is_read(text: str) -> None:
    adapter.ethtool_statistics(text)
    counters.parse(text)
    environment.verbs_driver(text)
    environment.active_mtu(text)
    environment.settings("rings", text)


def test_a_gauge_that_went_down_is_no_count() -> None:
    assert adapter.since({"a": 5, "b": 1}, {"a": 3, "b": 4, "new": 9}) == {"b": 3}


@pytest.mark.parametrize("transport", ["hw-v2", "ib"])
def test_the_counters_of_both_ends_are_the_proof(transport: str) -> None:
    """Counters of a benchmark of 1000 messages of 4096 bytes."""
    full = {"port.port_xmit_packets": 1000, "port.port_rcv_packets": 1000,
            "port.port_xmit_data": 1024 * 1000}  # fmt: skip

    def proven(one: dict[str, int], other: dict[str, int], seen: Frames) -> str:
        moved = {"n1": Counters({}, {}, adapter=one), "n2": Counters({}, {}, adapter=other)}
        return prove(
            TRANSPORTS[transport], moved, seen, Measurement((), 4096 * 1000, 1000)
        ).failures()

    assert proven(full, full, Frames()) == ""
    assert "n2 packets sent by the device is 0" in proven(full, {}, Frames())
    few = {**full, "port.port_xmit_data": 1000}
    assert "bytes sent by the devices is 8000" in proven(few, few, Frames())
    # TCP instead: the host's stack, which a capture sees
    assert "TCP payload" in proven(full, full, Frames(tcp_payload_bytes=4096 * 1000))
    other = proven(full, full, Frames(roce_v1=3))
    assert ("other version" in other) == (transport == "hw-v2")


def test_ipoib_is_proven_by_its_interfaces() -> None:
    sent = {"tx_packets": 9, "rx_packets": 8, "tx_bytes": 5000}
    moved = {"n1": Counters({}, sent), "n2": Counters({}, {**sent, "tx_bytes": 100})}
    assert prove(TRANSPORTS["ipoib"], moved, Frames(), Measurement((), 5000)).ok
    assert not prove(TRANSPORTS["ipoib"], moved, Frames(), Measurement((), 5200)).ok


INFINIBAND = "00:00:10:87:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:a0:a3:71"


def test_an_ipoib_interface_can_be_the_data_interface() -> None:
    address = {"family": "inet", "scope": "global", "local": "10.1.0.1"}
    about = {"ifname": "ib0", "flags": ["UP"], "mtu": 2044}
    listing = [{**about, "address": INFINIBAND, "addr_info": [address]}]
    assert link.parse(json.dumps(listing), "ib0", host="h").mac == INFINIBAND


LINKS = json.dumps(
    [
        {"ifname": "mlx5_0", "port": 1, "netdev": "eth1"},
        {"ifname": "mlx5_1", "port": 1},
        {"ifname": "../x", "port": 1},
    ]
)


class Host:
    """Answers by the first words of a command."""

    name = "n1"
    link = DataLink("eth1", "10.0.0.1", "02:00:00:00:00:01", 9000)

    def __init__(self, soft: str = "", version: str = "", links: str = LINKS) -> None:
        """`soft` is an rxe device, of the driver of that version."""
        self.soft, self.version, self.links = soft, version, links

    def run(self, argv, **_: object) -> Completed:
        code, said = 1, ""
        if (both := several(argv, lambda one: self.run(one).stdout)) is not None:
            code, said = 0, both
        elif argv[0] == "rdma":
            code, said = 0, self.links
        elif argv == verbs_ports.SYSFS:
            said = "mlx5_1/ports/1/link_layer:InfiniBand\nmlx5_0/ports/1/link_layer:Ethernet\n"
            if self.soft:
                said += f"{self.soft}/parent:eth1\n{self.soft}/ports/1/link_layer:Ethernet\n"
        elif argv == ("cat", "/sys/class/net/eth1/type"):
            code, said = 0, "1\n"
        elif argv[0] == "cat":
            code, said = 0, self.version
        elif "gid_attrs/types" in " ".join(argv):
            base = "/sys/class/infiniband/mlx5_0/ports/1"
            said = "".join(
                f"{base}/gids/{i}:{address}\n{base}/gid_attrs/types/{i}:{kind}\n"
                for i, (address, kind) in enumerate(
                    (a, k)
                    for a in ("fe80::1", "::ffff:10.0.0.1")
                    for k in ("IB/RoCE v1", "RoCE v2")
                )
            )
        return Completed(tuple(argv), code, said, "")


def test_what_a_host_is_asked_for_each_transport() -> None:
    """GIDs by type and address; none for InfiniBand, for which the inventory names the device."""
    host = Host()
    ethernet = Endpoint("n1", Host.link, "rxe0", host)
    ports = verbs_ports.find(ethernet)
    assert ports == Ports(None, (VerbsPort("mlx5_0", 1),))
    assert verbs.end(ethernet, ports, TRANSPORTS["hw-v1"]) == End(
        *("10.0.0.1", "mlx5_0", 1, 2), netdev="eth1"
    )
    assert verbs.end(ethernet, ports, TRANSPORTS["hw-v2"]) == End(
        *("10.0.0.1", "mlx5_0", 1, 3), netdev="eth1"
    )
    assert verbs.place(ethernet, ports, TRANSPORTS["hw-v2"]).gid_index == 3
    infiniband = Endpoint("n1", Host.link, "rxe0", host, adapter="mlx5_1")
    assert verbs.end(infiniband, verbs_ports.find(infiniband), TRANSPORTS["ib"]) == End(
        *("10.0.0.1", "mlx5_1", 1), netdev="eth1"
    )
    for ask in (verbs.end, verbs.place):
        with pytest.raises(CellError, match="eth1 on n1 is no IPoIB interface"):
            ask(ethernet, ports, TRANSPORTS["ipoib"])
        with pytest.raises(CellError, match="link layer is Ethernet, not InfiniBand"):
            ask(ethernet, ports, TRANSPORTS["ib"])
    assert gid.parse("") == ()
    assert IPv6Address("::ffff:10.0.0.1").ipv4_mapped is not None


def test_an_adapter_and_rxe_side_by_side() -> None:
    """Each transport gets its device; an adapter's traffic is never attributed to rxe."""
    both = json.dumps(
        [{"ifname": name, "port": 1, "netdev": "eth1"} for name in ("rxe_eth1", "mlx5_0")]
    )
    end = Endpoint("n1", Host.link, "rxe_eth1", Host("rxe_eth1", links=both))
    ports = verbs_ports.find(end)
    assert ports == Ports(VerbsPort("rxe_eth1", 1), (VerbsPort("mlx5_0", 1),))
    assert ports.of(TRANSPORTS["tcp"]) == ports.of(TRANSPORTS["rxe-v2"]) == ports.soft
    assert verbs.end(end, ports, TRANSPORTS["hw-v2"]).device == "mlx5_0"
    alone = Endpoint("n1", Host.link, "rxe0", Host())
    for ask in (verbs.end, verbs.place):
        with pytest.raises(CellError, match="n1 has no rxe device on eth1"):
            ask(alone, verbs_ports.find(alone), TRANSPORTS["rxe-v2"])


def test_our_own_soft_roce_is_no_adapter() -> None:
    """An instrumented rxe device is refused: rxe-v2 shows its stages. A stock one is accepted."""
    ours, stock = (
        Endpoint("n1", Host.link, "mlx5_0", Host("mlx5_0", version))
        for version in ("rocelab-0123456789ab", "")
    )
    with pytest.raises(CellError, match="instrumented driver") as caught:
        verbs.end(ours, verbs_ports.find(ours), TRANSPORTS["hw-v2"])
    assert "rxe-v2" in caught.value.action
    assert verbs.end(stock, verbs_ports.find(stock), TRANSPORTS["hw-v2"])


def test_commands_without_a_gid() -> None:
    job = Job(TESTS["perftest", "send_bw"], 64, 100, 1, 14, 18515,
              End("10.0.0.1", "mlx5_1", 1), End("10.0.0.2", "mlx5_1", 1))  # fmt: skip
    assert "-x" not in perftest.client(job)
    place = Place("n1", "ib0", "mlx5_1", 1)
    settings = recipe.for_node(TRANSPORTS["ib"], place, one_machine=False)
    assert settings["UCX_TLS"] == "rc,ud,self,sm"
    assert settings["UCX_NET_DEVICES"] == "mlx5_1:1"
    assert "UCX_IB_GID_INDEX" not in settings
    ipoib = recipe.for_node(TRANSPORTS["ipoib"], place, one_machine=False)
    assert ipoib["OMPI_MCA_btl_tcp_if_include"] == "ib0"


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"verbs": {"driver": "rdma_rxe"}, "adapter": {"driver": "mlx5_core"}}, "mlx5_core"),
        ({"verbs": None, "adapter": {"driver": "bnxt_en"}}, "bnxt_en"),
        ({"verbs": {"driver": "rdma_rxe"}, "adapter": None}, "rdma_rxe"),
        ({"verbs": None, "adapter": None}, "e1000e"),
    ],
)
def test_results_name_the_driver_that_sent(facts: dict[str, object], named: str) -> None:
    """An rxe device next to the adapter does not affect the adapter's numbers."""
    plan = plan_file.from_toml(
        '[plan]\nname = "x"\nrepetitions = 1\ntransports = ["hw-v2"]\n'
        '[[benchmark]]\ntool = "perftest"\ntest = "write_lat"\nsizes = [64]\n',
        "x.toml",
    )
    meta = {"nodes": {"n1": {"nic": {"driver": "e1000e"}, **facts}}}
    assert results._driver(meta, plan.cells()[0], "n1") == named


def test_a_plan_of_adapters_needs_no_driver_of_ours() -> None:
    text = """
[plan]
name = "p"
transports = ["hw-v1", "hw-v2", "ib", "ipoib", "tcp"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [64]
"""
    plan = plan_file.from_toml(text, "p.toml")
    assert not plan.rxe
    assert {(cell.transport.name, cell.test.tool) for cell in plan.cells()} >= {
        ("ib", "perftest"),
        ("ipoib", "qperf"),
    }


def test_settings_of_interrupts_as_ethtool_says_them() -> None:
    said = '[{"ifname":"eth1","rx-usecs":8,"tx-frames":32,"adaptive-rx":true,"x":null,"y":[1]}]'
    assert environment.settings("coalescing", said) == {
        "coalescing rx-usecs": 8,
        "coalescing tx-frames": 32,
        "coalescing adaptive-rx": True,
    }
    assert environment.settings("rings", "netlink error: Operation not supported") == {}
    assert environment.verbs_driver("mlx5_core\n") == "mlx5_core"
    assert environment.verbs_driver("a b") is None
    assert environment.active_mtu("\tactive_mtu:\t\t4096 (5)\n") == 4096
