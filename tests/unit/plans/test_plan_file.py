# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans: strict reading, round trip through run.json, and the order of cells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import ExitCode, UsageError
from rocelab.measure.testbed_for_plan import move_plan
from rocelab.plans import plan_file
from rocelab.plans.catalog import PAIR_TESTS, TESTS, TRANSPORTS, Provider, counterpart

GOOD = """
[plan]
name = "small"
repetitions = 2
transports = ["tcp", "rxe-v2"]
[testbed]
provider = "qemu"
line = "6.12"
mtu = 4200
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [2, 64]
iterations = 100
"""


def test_every_built_in_plan_is_valid() -> None:
    assert "demo" in plan_file.built_in_names()
    for name in plan_file.built_in_names():
        assert plan_file.load(name).name == name


def test_defaults_are_those_of_the_design() -> None:
    plan = plan_file.from_toml(
        '[plan]\nname = "p"\ntransports = ["tcp"]\n'
        '[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [1]\n',
        "p.toml",
    )
    assert plan.repetitions == 10
    assert plan.seed == 1
    assert (plan.testbed.provider, plan.testbed.line, plan.testbed.mtu) == ("qemu", "6.12", 4200)
    assert plan.probes == ("rxestat",)
    assert plan.benchmarks[0].transports == ("tcp",)
    assert not plan.warnings()


def test_few_repetitions_are_warned_about() -> None:
    assert "confidence interval" in plan_file.from_toml(GOOD, "p.toml").warnings()[0]


def test_a_plan_survives_run_json() -> None:
    plan = plan_file.load("demo")
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    classed = plan_file.from_toml(
        GOOD.replace("iterations = 100", "traffic_class = 106\nservice_level = 3"), "p.toml"
    )
    assert (classed.benchmarks[0].traffic_class, classed.benchmarks[0].service_level) == (106, 3)
    assert plan_file.from_dict(classed.to_dict(), "run.json") == classed


def test_stacks_are_rxecpus() -> None:
    """They are recorded on request, by a probe that the plan has."""
    asked = GOOD.replace("[testbed]", 'probes = ["rxecpu"]\nstacks = true\n[testbed]')
    plan = plan_file.from_toml(asked, "p.toml")
    assert plan.observe == ("rxecpu", "stacks")
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    assert plan_file.from_toml(GOOD, "p.toml").observe == ("rxestat",)
    with pytest.raises(UsageError, match=r"plan\.stacks: rxecpu records them"):
        plan_file.from_toml(GOOD.replace("[testbed]", "stacks = true\n[testbed]"), "p.toml")


def test_a_traffic_class_is_for_verbs() -> None:
    text = (
        '[plan]\nname = "p"\ntransports = ["tcp"]\n'
        '[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [1]\ntraffic_class = 4\n'
    )
    with pytest.raises(UsageError, match="qperf cannot set it"):
        plan_file.from_toml(text, "p.toml")


def test_each_allowed_key_is_named_once() -> None:
    text = GOOD.replace("= 100", "= 100\nmessage_cost = false\nloops = 7")
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(text, "p.toml")
    allowed = caught.value.action.removeprefix("Allowed here: ").rstrip(".").split(", ")
    assert "message_cost" in allowed
    assert len(allowed) == len(set(allowed))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("repetitions", "repetition", "p.toml: plan.repetition: unknown key (did you mean 'repet"),
        ("[testbed]", "[testbad]", "p.toml: testbad: unknown key (did you mean 'testbed'?)"),
        ("mtu =", "mut =", "p.toml: testbed.mut: unknown key (did you mean 'mtu'?)"),
        ("iterations", "iters", "p.toml: benchmark[1].iters: unknown key"),
        (
            '"rxe-v2"',
            '"rxe-v3"',
            "plan.transports: unknown value 'rxe-v3' (did you mean 'rxe-v2'?)",
        ),
        (
            '"perftest"',
            '"perfest"',
            "benchmark[1].tool: unknown value 'perfest' (did you mean 'perf",
        ),
        (
            '"write_lat"',
            '"write_lag"',
            "benchmark[1].test: unknown value 'write_lag' (did you mean",
        ),
        ('"qemu"', '"vmware"', "testbed.provider: unknown value 'vmware'"),
        ('"6.12"', '"6.13"', "testbed.line: unknown value '6.13'"),
        ('"6.12"', "6.12", "testbed.line: unknown value 6.12"),
        ("[2, 64]", "[2, 0]", "benchmark[1].sizes: 0 is out of range"),
        ("[2, 64]", "[2, 2]", "benchmark[1].sizes: 2 appears twice"),
        ("[2, 64]", "[2, true]", "benchmark[1].sizes: True is not a whole number"),
        ("[2, 64]", "[]", "benchmark[1].sizes: the list is empty"),
        ("[2, 64]", "64", "benchmark[1].sizes: 64 is not a list"),
        ("= 2\n", "= 0\n", "plan.repetitions: 0 is out of range"),
        ("= 4200", "= 90000", "testbed.mtu: 90000 is out of range"),
        ('"small"', '"../small"', "plan.name: '../small' cannot name a folder"),
        ('"small"', '"a\\u001b[31m"', "plan.name: 'a\\x1b[31m' cannot name a folder"),
        ('name = "small"\n', "", "plan.name: is missing"),
        ("write_lat", "read_lat", "perftest read_lat has no counterpart over tcp"),
        ("iterations = 100", "path_mtu = 1500", "benchmark[1].path_mtu: unknown value 1500"),
        ("iterations = 100", "traffic_class = 256", "benchmark[1].traffic_class: 256 is out of"),
        ("iterations = 100", "service_level = 16", "benchmark[1].service_level: 16 is out of"),
        ("[[benchmark]]", "[benchmark]", "benchmark: is not a list of tables"),
        ("[plan]", "[plan", "p.toml: not valid TOML"),
    ],
)
def test_bad_plans_are_refused_by_name(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(GOOD.replace(old, new, 1), "p.toml")
    assert message in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


def test_errors_list_the_allowed_values() -> None:
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(GOOD.replace("rxe-v2", "roce"), "p.toml")
    for transport in TRANSPORTS:
        assert transport in caught.value.action


def test_duplicate_benchmarks_are_refused() -> None:
    twin = GOOD[GOOD.index("[[benchmark]]") :]
    with pytest.raises(UsageError, match="perftest write_lat appears twice"):
        plan_file.from_toml(GOOD + twin, "p.toml")


def test_a_missing_plan_names_the_built_in_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        plan_file.load(str(tmp_path / "none.toml"))
    assert "demo" in caught.value.action


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        plan_file.load(str(path))
    path.write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(UsageError, match="too large"):
        plan_file.load(str(path))
    with pytest.raises(UsageError, match="cannot read"):
        plan_file.load(str(tmp_path) + "/")


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["plan", "testbed", "benchmark", "name", "sizes"]) | st.text(), inner
    ),
))  # fmt: skip
def test_any_document_is_a_plan_or_a_usage_error(document: object) -> None:
    with pytest.raises(UsageError):
        plan_file.from_dict(
            document if isinstance(document, dict) else {"plan": document}, "p.toml"
        )


@given(seed=st.integers(0, 2**63 - 1), repetitions=st.integers(1, 12))
def test_each_repetition_has_every_cell_once(seed: int, repetitions: int) -> None:
    text = GOOD.replace("repetitions = 2", f"repetitions = {repetitions}\nseed = {seed}")
    text += '[[benchmark]]\ntool = "qperf"\ntest = "tcp_bw"\nsizes = [9]\ntransports = ["tcp"]\n'
    cells = plan_file.from_toml(text, "p.toml").cells()
    assert len(cells) == repetitions * 3
    for number in range(repetitions):
        block = cells[number * 3 : number * 3 + 3]
        assert {cell.repetition for cell in block} == {number + 1}
        assert len({(cell.benchmark.tool, cell.transport.name) for cell in block}) == 3


def test_the_order_is_fixed_by_the_seed() -> None:
    # written down, so that a new Python or a refactoring cannot silently reorder a plan
    names = [cell.name for cell in plan_file.from_toml(GOOD, "p.toml").cells()]
    assert names == [
        "perftest-write_lat.rxe-v2.r01",
        "perftest-write_lat.tcp.r01",
        "perftest-write_lat.rxe-v2.r02",
        "perftest-write_lat.tcp.r02",
    ]


def test_seeds_interleave_transports() -> None:
    first = Counter(
        plan_file.from_toml(GOOD.replace("= 2\n", f"= 1\nseed = {seed}\n", 1), "p")
        .cells()[0]
        .transport.name
        for seed in range(200)
    )
    assert min(first["tcp"], first["rxe-v2"]) > 60


def test_counterparts_measure_the_same_kind() -> None:
    for test in TESTS.values():
        if test.tcp_counterpart is not None:
            other = TESTS[test.tcp_counterpart]
            assert (other.quantity, other.kind, other.family) == (test.quantity, test.kind, "tcp")
        for transport in TRANSPORTS.values():
            measuring = counterpart(test, transport)
            assert measuring is None or measuring.family in ("mpi", "any", transport.family)


def test_only_perftests_bandwidth_tests_report_cpu_utilization() -> None:
    text = """
[plan]
name = "p"
transports = ["rxe-v2"]
[[benchmark]]
tool = "perftest"
test = "write_bw"
sizes = [64]
cpu_util = true
"""
    plan = plan_file.from_toml(text, "p.toml")
    assert plan.benchmarks[0].cpu_util
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    with pytest.raises(UsageError, match="perftest write_lat reports no CPU utilization"):
        plan_file.from_toml(text.replace("write_bw", "write_lat"), "p.toml")


def test_only_perftests_completions_are_events() -> None:
    text = """
[plan]
name = "p"
transports = ["rxe-v2"]
[[benchmark]]
tool = "perftest"
test = "send_lat"
sizes = [64]
events = true
"""
    plan = plan_file.from_toml(text, "p.toml")
    assert plan.benchmarks[0].events
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    for other in ('tool = "perftest"\ntest = "write_lat"', 'tool = "mpibench"\ntest = "latency"'):
        with pytest.raises(UsageError, match="waits for no completion event"):
            plan_file.from_toml(text.replace('tool = "perftest"\ntest = "send_lat"', other), "p")


def _sizes(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def test_the_documentation_prints_the_catalog() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats" / "plan.md").read_text()
    table = page.split("| tools | tests |")[1].split("\n\n")[0]
    described: dict[str, set[tuple[str, ...]]] = {}
    tools = ""
    for row in table.splitlines()[2:]:
        named, tests, *rest = (cell.strip() for cell in row[1:-1].split("|"))
        tools = named or tools
        for tool in tools.split(", "):
            described.setdefault(tool, set()).update((name, *rest) for name in tests.split(", "))
    catalog: dict[str, set[tuple[str, ...]]] = {}
    for test in TESTS.values():
        row = (test.name, test.quantity, str(test.kind), _sizes(*test.sizes))
        catalog.setdefault(test.tool, set()).add(row)
    suites = {tool: catalog.pop(tool) for tool in ("mpibench", "omb", "imb", "skampi")}
    assert described.pop("MPI suites") == suites["mpibench"] == suites["omb"]
    lacks = {tool: {row[0] for row in suites["omb"] - rows} for tool, rows in suites.items()}
    assert lacks["imb"] == {"multi_lat", "mbw_mr"}
    assert lacks["skampi"] == {*PAIR_TESTS, "reduce_scatter"} - {"latency"}
    assert described == catalog
    text = " ".join(page.split())
    assert "`imb`, which lacks multi_lat and mbw_mr, and `skampi`, which has latency and" in text
    example = page.split("```toml\n")[1].split("```")[0]
    assert plan_file.from_toml(example, "plan.md").repetitions == 10


def test_the_documentation_names_the_counterparts_over_tcp() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats" / "plan.md").read_text()
    said = " ".join(page.split("Over `tcp`, other programs take")[1].split("\n\n")[0].split())
    others: dict[str, list[str]] = {}
    for test in TESTS.values():
        over_tcp = counterpart(test, TRANSPORTS["tcp"])
        if over_tcp != test and over_tcp and test.tool == "perftest":
            others.setdefault(over_tcp.program, []).append(test.name)
    assert others == {
        "qperf tcp_lat": ["send_lat", "write_lat"],
        "qperf tcp_bw": ["send_bw", "write_bw", "read_bw"],
    }
    assert "`qperf tcp_lat` that of perftest's send_lat and write_lat" in said
    assert "`qperf tcp_bw` that of its send_bw, write_bw and read_bw" in said
    assert "`ftp` that of rcopy" in said


FAULTY = """
[plan]
name = "faulty"
repetitions = 2
transports = ["rxe-v2"]
[testbed.faults.seven]
action = "drop"
message = 3
packet = 7
[testbed.faults.busy]
action = "rnr_nak"
rnr_timer = 0
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [16384]
faults = ["busy", "seven"]
[[benchmark]]
tool = "perftest"
test = "send_bw"
label = "plain"
sizes = [16384]
"""


def test_faults_belong_to_benchmarks() -> None:
    """By name, with every default, and also out of run.json."""
    plan = plan_file.from_toml(FAULTY, "p.toml")
    faulty, plain = plan.benchmarks
    busy, seven = faulty.faults
    assert (busy.action, busy.message, busy.rnr_timer) == ("rnr_nak", 2, 0)
    assert (seven.action, seven.direction, seven.times) == ("drop", "to_server", 1)
    assert (seven.message, seven.packet) == (3, 7)
    assert plain.faults == ()
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    assert "faults" not in plan_file.from_toml(GOOD, "p.toml").to_dict()["testbed"]


def test_faults_that_end_the_connection() -> None:
    ending = FAULTY.replace('action = "drop"', 'action = "kill"')
    ending = ending.replace('faults = ["b', 'retry_count = 3\nrx_depth = 2\nfaults = ["b')
    plan = plan_file.from_toml(ending, "p.toml")
    faulty, plain = plan.benchmarks
    assert faulty.ends_with_error
    assert (faulty.retry_count, faulty.rx_depth) == (3, 2)
    assert (plain.ends_with_error, plain.retry_count, plain.rx_depth) == (False, None, None)
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan


def test_faults_by_time() -> None:
    timed = FAULTY.replace("message = 3\npacket = 7", "at_us = 500\nevery_us = 40\ntimes = 9")
    plan = plan_file.from_toml(timed, "p.toml")
    _, seven = plan.benchmarks[0].faults
    assert (seven.at_us, seven.every_us, seven.times, seven.message) == (500, 40, 9, 0)
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('action = "drop"', 'action = "lose"', "faults.seven.action: unknown value"),
        ("packet = 7", "packets = 7", "faults.seven.packets: unknown key"),
        ("packet = 7", "packet = -2", "faults.seven.packet: -2 is out of range"),
        ("packet = 7", "bit = 9", "faults.seven.bit: the action does not use it"),
        ("packet = 7", "at_us = 9", "faults.seven.message: a fault by time meets any packet"),
        ("packet = 7", "every_us = 9", "faults.seven.every_us: the fault does not begin"),
        ("packet = 7", "at_us = -1", "faults.seven.at_us: -1 is out of range"),
        ("faults.seven", 'faults."a b"', "cannot name a fault"),
        ("faults.seven]", "faults]\nseven = 3\n[testbed.faults.six]", "is not a table"),
        (
            "[testbed.faults.seven]",
            "".join(f'[testbed.faults.f{n}]\naction = "drop"\n' for n in range(63))
            + "[testbed.faults.seven]",
            "is one more than 64 faults",
        ),
        ("rnr_timer = 0", "message = 1", "needs the client's queue pair number"),
        ("rnr_timer = 0", 'direction = "to_client"', "rnr_nak meets a request"),
        ('action = "drop"', 'action = "kill"', "retries are unlimited with rxe"),
        ('action = "drop"', 'action = "vanish"\ntimes = 2', "seven.times: 2 is out of range"),
        (
            'action = "drop"',
            'action = "stop"\ndirection = "to_client"',
            "stop meets a request",
        ),
        ('faults = ["busy", "seven"]', "retry_count = 7", "retry_count: 7 is out of range"),
        ('faults = ["b', 'retry_count = 3\npath_mtu = 1024\nfaults = ["b', "takes the largest MTU"),
        (
            '"send_bw"\nsizes = [16384]\nfaults',
            '"send_lat"\nrx_depth = 1\nsizes = [16384]\nfaults',
            "perftest send_lat never outruns its receiver",
        ),
        ('["busy", "seven"]', '["busy", "eight"]', "faults: unknown value 'eight'"),
        ('"perftest"\ntest = "send_bw"', '"mpibench"\ntest = "latency"', "several queue pairs"),
        ('"rxe-v2"]', '"rxe-v1"]', "they meet only RoCE v2"),
        (
            "[testbed.faults.seven]",
            "[testbed.link]\nloss_ppm = 1\n[testbed.faults.seven]",
            "a shaped link",
        ),
        (
            "[testbed.faults.seven]",
            "[testbed]\nswitches = 1\n[testbed.faults.seven]",
            "a switch is between",
        ),
        ("packet = 7", "every_packets = 9", "faults.seven.message: a fault by count meets"),
        ("message = 3\npacket = 7", "every_packets = 1", "every packet is met"),
        ("message = 3\npacket = 7", "every_packets = 9\ntimes = 2", "seven.times: a fault by"),
        ("rnr_timer = 0", "every_packets = 9", "it is for faults of packets"),
    ],
)
def test_faults_that_cannot_be_are_refused(old: str, new: str, message: str) -> None:
    assert old in FAULTY
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(FAULTY.replace(old, new, 1), "p.toml")
    assert message in caught.value.what
    assert caught.value.action


BY_TC = """
[plan]
name = "faulty"
repetitions = 1
transports = ["rxe-v2"]
[testbed]
provider = "{provider}"
[testbed.faults.it]
{fault}
[[benchmark]]
tool = "perftest"
test = "read_lat"
sizes = [64]
retry_count = 3
faults = ["it"]
"""


@pytest.mark.parametrize("provider", ["veth", "ssh", "slurm"])
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ('action = "drop"\nmessage = 3', "it.message: not with provider {}: tc does not know mess"),
        ('action = "delay"\nat_us = 3', "it.at_us: not with provider {}: tc counts packets"),
        ('action = "kill"', "it.message: not with provider {}: tc does not know messages"),
        ('action = "stop"\nat_us = 3\ntimes = 2', "it.times: not with provider {}: it happens"),
        ('action = "reorder"\nevery_packets = 9', "it.action: not with provider {}: tc holds"),
        ('action = "duplicate"\nevery_packets = 9', "it.action: not with provider {}: a copy"),
        ('action = "cnp"', "it.action: not with provider {}: tc makes no packets"),
        ('action = "rnr_nak"', "it.action: not with provider {}: tc makes no packets"),
        ('action = "flap"\nat_us = 3', "it.action: not with provider {}: no capture tells"),
        ('action = "vanish"\nat_us = 3', "it.action: not with provider {}: no capture tells"),
        (
            'action = "drop"\nevery_packets = 9\ndirection = "to_client"',
            "it.direction: not with provider {}: tc takes answers before",
        ),
    ],
)
def test_what_tc_cannot_do_is_refused_by_name(provider: str, fault: str, why: str) -> None:
    """On the provider of the plan, and when a plan for virtual machines is moved to it."""
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(BY_TC.format(provider=provider, fault=fault), "p.toml")
    assert why.format(provider) in caught.value.what
    assert caught.value.action
    plan = plan_file.from_toml(BY_TC.format(provider="qemu", fault=fault), "p.toml")
    with pytest.raises(UsageError) as moved:
        move_plan(plan, Provider(provider), icount=False, native=False)
    assert why.partition("{}: ")[2] in moved.value.what
    assert caught.value.action in moved.value.action


@pytest.mark.parametrize("provider", ["qemu", "veth", "ssh"])
@pytest.mark.parametrize(
    "fault",
    [
        *(
            f'action = "{action}"\nevery_packets = 9'
            for action in ("drop", "corrupt", "delay", "mark_ce")
        ),
        'action = "kill"\nat_us = 3',
        'action = "stop"\nat_us = 3',
    ],
)
def test_what_every_provider_can_do(provider: str, fault: str) -> None:
    plan = plan_file.from_toml(BY_TC.format(provider=provider, fault=fault), "p.toml")
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan


def test_a_killed_server_must_be_missed() -> None:
    """In a ping-pong nothing may be under way, and no timer of the client's runs."""
    fault = 'action = "kill"\nat_us = 3'
    pong = BY_TC.replace("read_lat", "send_lat")
    with pytest.raises(UsageError, match="nothing under way"):
        plan_file.from_toml(pong.format(provider="veth", fault=fault), "p.toml")
    plan = plan_file.from_toml(pong.format(provider="qemu", fault=fault), "p.toml")
    with pytest.raises(UsageError, match="fault it cannot happen") as moved:
        move_plan(plan, Provider.VETH, icount=False, native=False)
    assert "nothing under way" in moved.value.cause


def test_packages_are_names_only() -> None:
    """No option, removal or pattern of apt-get, and no file: a plan may be a stranger's."""
    asked = GOOD.replace("mtu = 4200", 'mtu = 4200\npackages = ["ucx-utils", "g++"]')
    plan = plan_file.from_toml(asked, "p.toml")
    assert plan.testbed.packages == ("g++", "ucx-utils")
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    for word in ("-y", "libc6-", "a b", "./x.deb", "a;id", "a*", "Perl", "x" * 101):
        with pytest.raises(UsageError, match=r"testbed\.packages"):
            plan_file.from_toml(asked.replace("g++", word), "p.toml")
    with pytest.raises(UsageError, match="hosts of your own"):
        plan_file.from_toml(asked.replace('"qemu"', '"ssh"'), "p.toml")
