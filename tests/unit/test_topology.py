# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes, switches and the link of a plan: what may be asked for, and the commands that make it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.bench import plan_file
from rocelab.bench.plan import LinkPlan
from rocelab.cli import run
from rocelab.cli.testbed import Provider
from rocelab.errors import CellError, TestbedError, UsageError
from rocelab.node import Completed, DataLink
from rocelab.provider import bridges
from rocelab.provider.bridges import Port
from rocelab.provider.veth import layout
from rocelab.provider.veth.layout import Layout
from rocelab.run import shaping

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
    ("testbed", "mpi", "said"),
    [
        ("nodes = 1", "", "testbed.nodes: 1 is out of range"),
        ("nodes = 9\nswitches = 1", "", "Allowed: 2 to 8"),
        ("nodes = 3", "", "3 nodes need a switch"),
        ('provider = "veth"\nnodes = 3', "", "Say switches = 1"),
        ("switches = 9", "", "testbed.switches: 9 is out of range"),
        ('provider = "ssh"\nswitches = 9', "", "testbed.switches: 9 is out of range"),
        ("[testbed.link]\ndelay_us = -1", "", "testbed.link.delay_us: -1 is out of range"),
        ("[testbed.link]\nloss_ppm = 1000000", "", "Allowed: 0 to 500000"),
        ("[testbed.link]\nrate_mbit = 1.5", "", "1.5 is not a whole number"),
        ('[testbed.link]\nrate_mbit = "1; reboot"', "", "is not a whole number"),
        ("[testbed.link]\njitter_us = 1", "", "testbed.link.jitter_us: unknown key"),
        ("link = 1", "", "is not a table"),
        (
            'provider = "veth"\nnodes = 3\nswitches = 1',
            "ranks = 6\nranks_per_node = 1",
            "ranks_per_node: 1 is out of",
        ),
    ],
)
def test_plans_that_cannot_be(testbed: str, mpi: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(PLAN.format(testbed, mpi), "p.toml")
    assert said in f"{caught.value.what} {caught.value.action}"


def test_ranks_go_to_as_many_nodes_as_there_are() -> None:
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
    # elsewhere: hosts of one's own have their own switches, the link's shape goes along
    hosts = run.elsewhere(plan, Provider.SSH, icount=False, native=False).testbed
    assert (hosts.nodes, hosts.switches, hosts.link.delay_us) == (3, None, 1000)
    machines = run.elsewhere(plan, Provider.QEMU, icount=False, native=False).testbed
    assert (machines.nodes, machines.switches) == (3, 2)
    # and what is between hosts is not between machines made here
    plan = replace(plan, testbed=hosts)
    with pytest.raises(UsageError, match="3 nodes need a switch"):
        run.elsewhere(plan, Provider.QEMU, icount=False, native=False)


def test_what_is_between_hosts_is_what_the_plan_says_of_it() -> None:
    """Nobody said is not back to back, also after run.json has had it."""
    for line, said in (("", None), ("switches = 0", 0), ("switches = 2", 2)):
        plan = plan_file.from_toml(PLAN.format(f'provider = "ssh"\n{line}', ""), "p.toml")
        again = plan_file.from_dict(json.loads(json.dumps(plan.to_dict())), "run.json")
        assert plan.testbed.switches == again.testbed.switches == said
        there = run.elsewhere(plan, Provider.SSH, icount=False, native=False)
        assert there.testbed.switches == said
        made = run.elsewhere(plan, Provider.QEMU, icount=False, native=False)
        assert made.testbed.switches == (said or 0)


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
def test_words_for_tc_are_numbers_with_units(link: LinkPlan) -> None:
    words = shaping.words(link)
    said = dict(zip(words[::2], words[1::2], strict=True))
    assert said.pop("limit").isdigit()
    assert bool(said) == link.is_shaped
    if "loss" in said:
        # never rounded to nothing
        assert round(float(said["loss"].removesuffix("%")) * 10_000) == link.loss_ppm > 0
    assert ("rate" in said, "delay" in said) == (link.rate_mbit > 0, link.delay_us > 0)


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
            found = [{"kind": "x", "handle": self.handle, "root": True, "drops": self.drops}]
            return Completed(tuple(argv), 0, json.dumps(found), "")
        self.ran.append(words)
        self.handle = "4791:" if "replace" in argv else "0:"
        return Completed(tuple(argv), 0, "", "")


def test_the_link_is_put_back_also_after_a_failure() -> None:
    node = Interface("0:")

    def fails() -> None:
        with shaping.shaped([node], LinkPlan(delay_us=1000)):
            assert "netem limit 100000 delay 1000us" in node.ran[0]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert node.ran[1:] == ["tc qdisc del dev data0 root"]


def test_what_a_killed_run_left_is_taken_over_and_what_is_somebodys_is_not() -> None:
    left = Interface("4791:")
    with shaping.shaped([left], LinkPlan(loss_ppm=1)):
        pass
    assert left.handle == "0:"
    theirs = Interface("8001:")
    with (
        pytest.raises(TestbedError, match="discipline of its own"),
        shaping.shaped([theirs], LinkPlan(loss_ppm=1)),
    ):
        pass
    assert not theirs.ran


def test_no_link_in_the_plan_touches_nothing() -> None:
    node = Interface("8001:")
    with shaping.shaped([node], LinkPlan()):
        pass
    assert not node.ran


@pytest.mark.parametrize(("handle", "drops"), [("0:", 3), ("4791:", "3")])
def test_drops_that_are_nobodys_are_no_number(handle: str, drops: object) -> None:
    with pytest.raises(CellError, match="not shaped any more"):
        shaping.dropped(Interface(handle, drops))
    assert shaping.dropped(Interface("4791:", 3)) == 3


def way(commands: list[tuple[str, ...]], start: str, mac: str) -> list[str]:
    """Bridges that a frame to `mac` crosses from the port `start` on, by the written tables."""
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
def test_a_frame_crosses_all_bridges_between_the_first_and_another(hops: int) -> None:
    ports = [Port(f"port{i}", f"02:00:00:00:00:0{i}") for i in (1, 2, 3)]
    for namespace in (None, "x"):
        made = bridges.make(ports, hops, 4200, namespace=namespace)
        there = way(made, "port1", ports[1].mac)
        assert there == [*(f"hop{i}" for i in range(1, hops + 1)), "port2"]
        back = way(made, "port3", ports[0].mac)
        assert back == [*(f"hop{i}" for i in range(hops, 0, -1)), "port1"]
        assert way(made, "port2", ports[2].mac) == [f"hop{hops}", "port3"]
        named = {c[c.index("name") + 1] for c in made if "name" in c}
        assert all(len(name) < 16 for name in named)  # IFNAMSIZ


def test_each_end_asks_for_its_way_to_each_other() -> None:
    plan = Layout(4200, 3, 1)
    asked = dict(plan.routes_to_ask())
    assert asked["ip", "route", "get", "10.45.0.1"] == "rocelab2"
    assert asked["ip", "route", "get", "10.45.0.3"] == "rocelab1"
    assert asked["ip", "route", "get", "10.45.0.2", "from", "10.45.0.3"] == "rocelab3"
    # what is removed is what was made
    rules = {" ".join(c).replace(" add ", " ") for c in plan.make() if c[1] == "rule"}
    gone = {" ".join(c).replace(" del ", " ") for c in layout.remove() if c[1] == "rule"}
    assert {rule for rule in rules if "local" not in rule} <= gone
