# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes, switches and the link of a plan: which values are valid, and the commands they lead to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.cli.testbed import Provider
from rocelab.errors import CellError, TestbedError, UsageError
from rocelab.measure.testbed_for_plan import move_plan
from rocelab.plans import plan_file
from rocelab.plans.plan import LinkPlan
from rocelab.testbed import bridges, shaping
from rocelab.testbed.bridges import Port
from rocelab.testbed.node import Completed, DataLink
from rocelab.testbed.veth import layout
from rocelab.testbed.veth.layout import Layout

PLAN = """
[plan]
name = "p"
transports = ["tcp"]
[testbed]
{}
[[benchmark]]
tool = "mpibench"
test = "allreduce"
sizes = [4]
[benchmark.mpi]
{}
"""


@pytest.mark.parametrize(
    ("testbed", "mpi", "message"),
    [
        ("nodes = 1", "", "testbed.nodes: 1 is out of range"),
        ("nodes = 9\nswitches = 1", "", "Allowed: 2 to 8"),
        ("nodes = 3", "", "3 nodes need a switch"),
        ('provider = "veth"\nnodes = 3', "", "Set switches = 1"),
        ("switches = 9", "", "testbed.switches: 9 is out of range"),
        ('provider = "ssh"\nswitches = 9', "", "testbed.switches: 9 is out of range"),
        ("[testbed.link]\ndelay_us = -1", "", "testbed.link.delay_us: -1 is out of range"),
        ("[testbed.link]\nloss_ppm = 1000000", "", "Allowed: 0 to 500000"),
        ("[testbed.link]\nrate_mbit = 1.5", "", "1.5 is not a whole number"),
        ('[testbed.link]\nrate_mbit = "1; reboot"', "", "is not a whole number"),
        ("[testbed.link]\njitter_us = 1", "", "testbed.link.jitter_us: unknown key"),
        ("link = 1", "", "is not a table"),
        ('provider = "ssh"\nfresh = true', "", "boots only virtual machines"),
        ('provider = "veth"\nnative = true\nfresh = true', "", "boots only virtual machines"),
        (
            'provider = "veth"\nnodes = 3\nswitches = 1',
            "ranks = 6\nranks_per_node = 1",
            "ranks_per_node: 1 is out of",
        ),
    ],
)
def test_impossible_testbeds_are_refused(testbed: str, mpi: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(PLAN.format(testbed, mpi), "p.toml")
    assert message in f"{caught.value.what} {caught.value.action}"


def test_ranks_are_spread_over_all_nodes() -> None:
    text = PLAN.format(
        'provider = "veth"\nnodes = 3\nswitches = 2\n'
        "[testbed.link]\nrate_mbit = 100\ndelay_us = 1000",
        "ranks = 5",
    )
    plan = plan_file.from_toml(text, "p.toml")
    (benchmark,) = plan.benchmarks
    assert benchmark.mpi is not None
    assert (benchmark.mpi.ranks_per_node, benchmark.nodes) == (2, 3)
    assert plan_file.from_dict(json.loads(json.dumps(plan.to_dict())), "run.json") == plan
    # your own hosts keep their switches; the link's shaping moves with the plan
    hosts = move_plan(plan, Provider.SSH, icount=False, native=False).testbed
    assert (hosts.nodes, hosts.switches, hosts.link.delay_us) == (3, None, 1000)
    machines = move_plan(plan, Provider.QEMU, icount=False, native=False).testbed
    assert (machines.nodes, machines.switches) == (3, 2)
    # and switches between hosts do not carry over to virtual machines
    plan = replace(plan, testbed=hosts)
    with pytest.raises(UsageError, match="3 nodes need a switch"):
        move_plan(plan, Provider.QEMU, icount=False, native=False)


def test_switches_between_hosts_are_taken_from_the_plan() -> None:
    """A plan that does not mention switches does not mean back to back; run.json keeps that."""
    for line, switches in (("", None), ("switches = 0", 0), ("switches = 2", 2)):
        plan = plan_file.from_toml(PLAN.format(f'provider = "ssh"\n{line}', ""), "p.toml")
        again = plan_file.from_dict(json.loads(json.dumps(plan.to_dict())), "run.json")
        assert plan.testbed.switches == again.testbed.switches == switches
        on_hosts = move_plan(plan, Provider.SSH, icount=False, native=False)
        assert on_hosts.testbed.switches == switches
        virtual = move_plan(plan, Provider.QEMU, icount=False, native=False)
        assert virtual.testbed.switches == (switches or 0)


def test_a_plan_of_an_older_run_has_two_nodes_back_to_back() -> None:
    values = plan_file.load("demo").to_dict()
    for key in ("nodes", "switches", "link"):
        del values["testbed"][key]
    assert plan_file.from_dict(values, "run.json") == plan_file.load("demo")


@given(
    st.builds(
        LinkPlan,
        st.integers(0, 400_000),
        st.integers(0, 1_000_000),
        st.integers(0, 500_000),
    )
)
def test_netem_parameters_are_numbers_with_units(link: LinkPlan) -> None:
    words = shaping.netem_parameters(link)
    values = dict(zip(words[::2], words[1::2], strict=True))
    assert values.pop("limit").isdigit()
    assert bool(values) == link.is_shaped
    if "loss" in values:
        # never rounded to zero
        assert round(float(values["loss"].removesuffix("%")) * 10_000) == link.loss_ppm > 0
    assert ("rate" in values, "delay" in values) == (link.rate_mbit > 0, link.delay_us > 0)


class Interface:
    """A node whose data interface has a queueing discipline."""

    name = "n1"
    link = DataLink("data0", "10.0.0.1", "02:00:00:00:00:01", 1500)

    def __init__(self, handle: str, drops: object = 0) -> None:
        self.handle, self.drops = handle, drops
        self.ran: list[str] = []

    @property
    def root(self) -> Interface:
        return self

    def run(self, argv, *, check: bool = True, **_: object) -> Completed:
        words = " ".join(argv)
        if "show" in argv:
            disciplines = [{"kind": "x", "handle": self.handle, "root": True, "drops": self.drops}]
            return Completed(tuple(argv), 0, json.dumps(disciplines), "")
        self.ran.append(words)
        self.handle = "4791:" if "replace" in argv else "0:"
        return Completed(tuple(argv), 0, "", "")


def test_the_link_is_restored_after_a_failure() -> None:
    node = Interface("0:")

    def fails() -> None:
        with shaping.shape([node], LinkPlan(delay_us=1000)):
            assert "netem limit 100000 delay 1000us" in node.ran[0]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert node.ran[1:] == ["tc qdisc del dev data0 root"]


def test_our_own_leftover_discipline_is_replaced_a_foreign_one_refused() -> None:
    leftover = Interface("4791:")
    with shaping.shape([leftover], LinkPlan(loss_ppm=1)):
        pass
    assert leftover.handle == "0:"
    foreign = Interface("8001:")
    with (
        pytest.raises(TestbedError, match="discipline that is not rocelab's"),
        shaping.shape([foreign], LinkPlan(loss_ppm=1)),
    ):
        pass
    assert not foreign.ran


def test_a_plan_without_a_link_changes_nothing() -> None:
    node = Interface("8001:")
    with shaping.shape([node], LinkPlan()):
        pass
    assert not node.ran


@pytest.mark.parametrize(("handle", "drops"), [("0:", 3), ("4791:", "3")])
def test_drops_are_read_only_from_our_discipline(handle: str, drops: object) -> None:
    with pytest.raises(CellError, match="no longer shaped"):
        shaping.drop_count(Interface(handle, drops), is_shaped=True)
    assert shaping.drop_count(Interface("4791:", 3), is_shaped=True) == 3


@pytest.mark.parametrize(("drops", "known"), [(3, 3), ("3", None), (None, None)])
def test_drops_of_the_systems_own_discipline(drops: object, known: int | None) -> None:
    assert shaping.drop_count(Interface("8001:", drops), is_shaped=False) == known


def path(commands: list[tuple[str, ...]], start: str, mac: str) -> list[str]:
    """Return the bridges that a frame to `mac` crosses from port `start`, and the last port."""
    master = {c[c.index("set") + 1]: c[c.index("master") + 1] for c in commands
              if "set" in c and "master" in c}  # fmt: skip
    veth = {}
    for c in commands:
        if "veth" in c:
            one, other = c[c.index("name") + 1], c[-3]
            veth |= {one: other, other: one}
    tables = {
        (master[c[c.index("dev") + 1]], c[c.index("replace") + 1]): c[c.index("dev") + 1]
        for c in commands
        if "fdb" in c
    }
    crossed, port = [], start
    while True:
        crossed.append(master[port])
        out = tables[master[port], mac]
        if out not in veth:
            return [*crossed, out]
        port = veth[out]


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_frame_to_or_from_the_first_node_crosses_all_bridges(hops: int) -> None:
    ports = [Port(f"port{i}", f"02:00:00:00:00:0{i}") for i in (1, 2, 3)]
    for namespace in (None, "x"):
        made = bridges.make(ports, hops, 4200, namespace=namespace)
        there = path(made, "port1", ports[1].mac)
        assert there == [*(f"hop{i}" for i in range(1, hops + 1)), "port2"]
        back = path(made, "port3", ports[0].mac)
        assert back == [*(f"hop{i}" for i in range(hops, 0, -1)), "port1"]
        assert path(made, "port2", ports[2].mac) == [f"hop{hops}", "port3"]
        named = {c[c.index("name") + 1] for c in made if "name" in c}
        assert all(len(name) < 16 for name in named)  # IFNAMSIZ


def test_the_routes_between_all_ends_are_checked() -> None:
    plan = Layout(4200, 3, 1)
    routes = dict(plan.expected_routes())
    assert routes["ip", "route", "get", "10.45.0.1"] == "rocelab2"
    assert routes["ip", "route", "get", "10.45.0.3"] == "rocelab1"
    assert routes["ip", "route", "get", "10.45.0.2", "from", "10.45.0.3"] == "rocelab3"


def test_remove_deletes_every_rule_that_make_adds() -> None:
    made = {" ".join(c).replace(" add ", " ") for c in Layout(4200, 3, 1).make() if c[1] == "rule"}
    removed = {" ".join(c).replace(" del ", " ") for c in layout.remove() if c[1] == "rule"}
    assert {rule for rule in made if "local" not in rule} <= removed


def test_faults_exact_to_the_packet_stay_between_two_virtual_machines() -> None:
    """A plan with them cannot be moved to a testbed that has no such link, and says why."""
    plan = plan_file.load("recovery")
    assert move_plan(plan, Provider.QEMU, icount=True, native=False).testbed.faults
    for provider, native in ((Provider.SSH, False), (Provider.VETH, False), (None, True)):
        with pytest.raises(UsageError, match=r"faults\.dropmiddle\.message does not") as refused:
            move_plan(plan, provider, icount=False, native=native)
        assert "tc does not know messages" in refused.value.what
