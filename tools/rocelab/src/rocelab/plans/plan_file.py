# SPDX-License-Identifier: GPL-2.0-or-later
"""Read plans from TOML, strictly: a misspelt key is an error and not silently ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from rocelab import kernel_lines
from rocelab.accelerators import Counting
from rocelab.limits import (
    MAX_CELLS,
    MAX_DELAY_US,
    MAX_LOSS_PPM,
    MAX_MTU,
    MAX_NODES,
    MAX_RATE_MBIT,
    MAX_REPETITIONS,
    MAX_SWITCHES,
    MIN_MTU,
)
from rocelab.plans import command, fault_file, fault_means, packages, testbed_rules
from rocelab.plans.benchmarks.mpi import recipe
from rocelab.plans.benchmarks.mpi.npb import CLASSES
from rocelab.plans.catalog import (
    COLLECTIVES,
    MPI_TOOLS,
    OWN_HOSTS,
    TESTS,
    TOOLS,
    TRANSPORTS,
    Probe,
    Provider,
    Test,
    counterpart,
)
from rocelab.plans.fault import OF_PROCESS, FaultPlan
from rocelab.plans.plan import (
    COUNTED_TOOLS,
    FEWEST_COUNTED,
    FEWEST_ITERATIONS,
    FEWEST_SECONDS,
    TIMED_TOOLS,
    Benchmark,
    LinkPlan,
    MpiPlan,
    Plan,
    TestbedPlan,
)
from rocelab.strict import Table, join_values, parse_toml, quote, read_toml

_DEFAULT_PROBES = (Probe.RXESTAT,)
METHODS = ("osu", "imb", "skampi")
PATH_MTUS = (256, 512, 1024, 2048, 4096)
_PROBLEMS = {
    "npb": (f"[{CLASSES}]", f"a class of NPB, one of {CLASSES}", CLASSES[0]),
    "hpcc": (r"[1-9]\d{2,5}", 'the order of HPL\'s matrix, such as "1000"', "1000"),
}
"""By tool: pattern of `problem`, its description for errors, and its default."""
_COUNTING: dict[str, Counting] = {"icount": "icount", "lockstep": "lockstep"}
_MAX_ALGORITHMS = 32
_LABEL = re.compile(r"[a-z0-9]{1,20}")
_STUDY = r"([a-z]{1,20}[0-9]{4})?"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
"""Plan names become folder names."""


def built_in_names() -> list[str]:
    """Return the names of the plans that come with rocelab."""
    folder = resources.files("rocelab.plans")
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml"))


def load(plan: str) -> Plan:
    """Read a plan by path, or a built-in plan by name.

    Raises UsageError, which names the file, the key, the value and what is allowed.
    """
    if "/" not in plan and plan in built_in_names():
        text = (resources.files("rocelab.plans") / f"{plan}.toml").read_text("utf-8")
        return from_toml(text, f"{plan} (built in)")
    return from_dict(
        read_toml(
            Path(plan),
            kind="plan",
            action=f"Give a path, or the name of a built-in plan: {join_values(built_in_names())}.",
        ),
        quote(plan)[1:-1],
    )


def from_toml(text: str, source: str) -> Plan:
    """Read a plan from TOML text; `source` names it in messages. Raises UsageError."""
    return from_dict(parse_toml(text, source, kind="plan"), source)


def from_dict(values: Mapping[str, Any], source: str) -> Plan:
    """Build a plan from its tables, read from TOML or run.json. Raises UsageError."""
    top = Table(values, source)
    head = top.table("plan")
    testbed = _testbed(top.table("testbed"))
    name = head.text("name")
    if not _NAME.fullmatch(name):
        head.fail(
            "name",
            f"{quote(name)} cannot name a folder",
            action="Use up to 40 of a-z, 0-9, - and _.",
        )
    repetitions = head.integer("repetitions", default=10, low=1, high=MAX_REPETITIONS)
    counted = None
    if head.has("counted_repetitions"):
        counted = head.integer("counted_repetitions", default=1, low=1, high=MAX_REPETITIONS)
    seed = head.integer("seed", default=1, low=0, high=(1 << 63) - 1)
    transports = head.choices("transports", TRANSPORTS)
    probes = head.choices("probes", tuple(map(str, Probe)), default=_DEFAULT_PROBES, empty=True)
    benchmarks = tuple(
        each
        for table in top.tables("benchmark")
        for each in _each_algorithm(table, _benchmark(table, transports, testbed, probes))
    )
    timing_pass = head.flag("timing_pass") if head.has("timing_pass") else None
    stacks = head.flag("stacks")
    if stacks and Probe.RXECPU not in probes:
        head.fail("stacks", "rxecpu records them", action='Add "rxecpu" to the probes.')
    study = head.matching("study", _STUDY, "a study's name, such as `gaiser2010`", default="")
    head.done()
    top.done()
    _refuse_duplicates(top, benchmarks)
    cells = repetitions * sum(len(benchmark.transports) for benchmark in benchmarks)
    if cells > MAX_CELLS:
        head.fail(
            "repetitions",
            f"the plan has {cells} cells",
            action=f"Allowed: {MAX_CELLS}, each a benchmark over a transport, once.",
            cause="it repeats many benchmarks often",
        )
    return Plan(
        name,
        repetitions,
        seed,
        transports,
        probes,
        testbed,
        benchmarks,
        study,
        counted,
        timing_pass,
        stacks,
    )


def _testbed(table: Table) -> TestbedPlan:
    provider = Provider(table.choice("provider", tuple(map(str, Provider)), default=Provider.QEMU))
    testbed = TestbedPlan(
        provider=provider,
        line=table.choice("line", kernel_lines.LINES, default=kernel_lines.DEFAULT_LINE),
        mtu=table.integer("mtu", default=4200, low=MIN_MTU, high=MAX_MTU),
        icount=table.flag("icount"),
        lockstep=table.flag("lockstep"),
        emulation=_COUNTING[table.choice("emulation", _COUNTING, default="icount")],
        native=table.flag("native"),
        nodes=table.integer("nodes", default=2, low=2, high=MAX_NODES),
        switches=_switches(table, provider),
        link=_link(table.table("link")),
        faults=fault_file.read(table.table("faults")),
        fresh=table.flag("fresh"),
        pin=_pin(table.table("pin")),
        packages=tuple(sorted(table.texts("packages", packages.NAME, packages.WORDS))),
    )
    if broken := testbed_rules.refusal(testbed):
        table.fail(broken.key, broken.why, action=broken.action)
    table.done()
    return testbed


def _switches(table: Table, provider: str) -> int | None:
    """Return the number of switches to make; for your own hosts, how many exist, if known."""
    if provider in OWN_HOSTS and not table.has("switches"):
        return None
    return table.integer("switches", default=0, low=0, high=MAX_SWITCHES)


def _pin(table: Table) -> bool | None:
    pin = table.flag("numa") if table.has("numa") else None
    table.done()
    return pin


def _link(table: Table) -> LinkPlan:
    link = LinkPlan(
        rate_mbit=table.integer("rate_mbit", default=0, low=0, high=MAX_RATE_MBIT),
        delay_us=table.integer("delay_us", default=0, low=0, high=MAX_DELAY_US),
        loss_ppm=table.integer("loss_ppm", default=0, low=0, high=MAX_LOSS_PPM),
    )
    table.done()
    return link


def _benchmark(
    table: Table,
    plan_transports: tuple[str, ...],
    testbed: TestbedPlan,
    probes: tuple[str, ...],
) -> Benchmark:
    tool = table.choice("tool", TOOLS)
    names = [name for of_tool, name in TESTS if of_tool == tool]
    if tool == "fio" and testbed.provider == Provider.VETH:
        table.fail(
            "tool",
            "one kernel cannot be both ends of a remote disk",
            action='Set provider = "qemu", or "ssh".',
        )
    test = TESTS[tool, table.choice("test", names)]
    transports = table.choices("transports", TRANSPORTS, default=plan_transports)
    measuring = [_required_counterpart(table, test, transport) for transport in transports]
    low = max(t.sizes[0] for t in (test, *measuring))
    high = min(t.sizes[1] for t in (test, *measuring))
    benchmark = Benchmark(
        tool=tool,
        test=test.name,
        sizes=_sizes(table, low, high, of_command=tool == command.TOOL),
        iterations=table.integer(
            "iterations", default=1000, low=FEWEST_ITERATIONS, high=10_000_000
        ),
        seconds=table.integer("seconds", default=1, low=1, high=3600),
        timeout=table.integer("timeout", default=300, low=1, high=86_400),
        # perftest's default is 14, 67 ms; 0 would mean to wait forever
        qp_timeout=table.integer("qp_timeout", default=14, low=1, high=31),
        path_mtu=table.optional("path_mtu", PATH_MTUS),
        transports=transports,
        label=_label(table),
        cpu_util=_cpu_util(table, test),
        events=_events(table, test),
        mpi=_mpi(table.table("mpi"), tool, testbed.nodes) if tool in MPI_TOOLS else None,
        traffic_class=_service(table, "traffic_class", tool, 255),
        service_level=_service(table, "service_level", tool, 15),
        faults=_faults(table, test, transports, testbed),
        large_iterations=_optional(table, "large_iterations", FEWEST_ITERATIONS, 10_000_000),
        counted_iterations=_optional(table, "counted_iterations", FEWEST_ITERATIONS, 10_000_000),
        volume=_optional(table, "volume", 1, 1 << 50),
        depth=_depth(table, tool),
        retry_count=_retry_count(table, test),
        rx_depth=_rx_depth(table, test),
        optional=_may_lack(table, tool),
        command=command.read(table.table("command"), test.name) if tool == command.TOOL else None,
    )
    if benchmark.measures_its_end and benchmark.retry_count is None:
        table.fail(
            "faults",
            "one ends the connection, but perftest's 7 retries are unlimited with rxe",
            action="Set retry_count to 1 to 6.",
        )
    _refuse_parts(table, test, benchmark.sizes)
    return replace(benchmark, message_cost=_message_cost(table, benchmark, probes))


def _message_cost(table: Table, benchmark: Benchmark, probes: tuple[str, ...]) -> bool:
    """Return whether the cost of a message is measured: by default where rxecpu splits it.

    That of a program that polls is measured in the kernel only, by rxecpu, and on demand.
    """
    counts = (benchmark.iterations, benchmark.counted_iterations, benchmark.large_iterations)
    fewest = min(count for count in counts if count is not None)
    timed = benchmark.tool in TIMED_TOOLS
    counted = timed or benchmark.tool in COUNTED_TOOLS
    counted = counted and not benchmark.cpu_util and not benchmark.faults
    sleeps = benchmark.sleeps or timed
    enough = benchmark.seconds >= FEWEST_SECONDS if timed else fewest >= FEWEST_COUNTED
    if not table.has("message_cost"):
        return counted and sleeps and enough and Probe.RXECPU in probes
    asked = table.flag("message_cost")
    if asked and counted and not sleeps and Probe.RXECPU not in probes:
        table.fail(
            "message_cost",
            f"{benchmark.tool} {benchmark.test} polls: only rxecpu tells its work from its wait",
            action="Add rxecpu to probes; or use pingpong latency, or set events = true.",
        )
    if asked and benchmark.mpi and benchmark.mpi.sweep and len(benchmark.sizes) > 1:
        table.fail(
            "message_cost",
            "one mpirun sends messages of all sizes, and rxecpu does not tell them apart",
            action="Set sweep = false in the benchmark's table mpi.",
        )
    if asked and not counted:
        table.fail(
            "message_cost",
            "it takes a tool that counts its messages, without faults",
            action=f"Use {join_values(sorted(COUNTED_TOOLS | TIMED_TOOLS))}, without cpu_util and "
            "faults.",
        )
    if asked and not enough and timed:
        table.fail(
            "message_cost",
            f"{benchmark.seconds} seconds are too few to tell a message from the program's start",
            action=f"Set seconds to {FEWEST_SECONDS} or more.",
        )
    if asked and not enough:
        table.fail(
            "message_cost",
            f"{fewest} iterations are too few to tell a message from the program's start",
            action=f"Set iterations to {FEWEST_COUNTED} or more.",
        )
    return asked


def _faults(
    table: Table, test: Test, transports: tuple[str, ...], testbed: TestbedPlan
) -> tuple[FaultPlan, ...]:
    if not table.has("faults"):
        return ()
    known = {fault.name: fault for fault in testbed.faults}
    names = table.choices("faults", tuple(known))
    if test.tool not in ("perftest", command.TOOL):
        table.fail(
            "faults",
            f"{test.tool} may use several queue pairs, or none",
            action="Only perftest's benchmarks and commands have faults.",
        )
    if transports != ("rxe-v2",):
        table.fail("faults", "they meet only RoCE v2", action='Set transports = ["rxe-v2"].')
    chosen = tuple(known[name] for name in names)
    if test.tool == command.TOOL and any(fault.action in OF_PROCESS for fault in chosen):
        table.fail(
            "faults",
            "kill and stop need to know the server's process, which a command may have several of",
            action="Use vanish or flap.",
        )
    if name := fault_means.may_wait(test, chosen, testbed.provider):
        why, action = fault_means.MAY_WAIT
        table.fail("faults", f"not {name} with provider {testbed.provider}: {why}", action=action)
    return chosen


def _service(table: Table, key: str, tool: str, high: int) -> int | None:
    """Return a traffic class or service level, which only verbs programs can be asked for."""
    if not table.has(key):
        return None
    if tool != "perftest" and tool not in MPI_TOOLS:
        table.fail(key, f"{tool} cannot set it", action="Only perftest and MPI over verbs do.")
    return table.integer(key, low=0, high=high)


def _depth(table: Table, tool: str) -> int | None:
    depth = _optional(table, "depth", 1, 1024)
    if depth is not None and tool != "fio":
        table.fail("depth", f"{tool} has none", action="Only fio keeps several requests in flight.")
    return depth


def _retry_count(table: Table, test: Test) -> int | None:
    if not table.has("retry_count"):
        return None
    if test.tool != "perftest":
        table.fail("retry_count", f"{test.tool} cannot set it", action="Only perftest does.")
    if table.has("path_mtu"):
        table.fail(
            "retry_count",
            "perftest sets it by rdma_cm, which takes the largest MTU",
            action="Remove path_mtu or retry_count.",
        )
    return table.integer("retry_count", low=1, high=6)


def _rx_depth(table: Table, test: Test) -> int | None:
    """Return how many receives the server posts, which only a stream of SENDs can outrun."""
    if not table.has("rx_depth"):
        return None
    if (test.tool, test.name) != ("perftest", "send_bw"):
        table.fail(
            "rx_depth",
            f"{test.tool} {test.name} never outruns its receiver",
            action="Only perftest's send_bw does.",
        )
    return table.integer("rx_depth", low=1, high=16384)


def _may_lack(table: Table, tool: str) -> bool:
    optional = table.flag("optional")
    if optional and tool not in (name for name in MPI_TOOLS if name != "mpibench"):
        table.fail(
            "optional",
            f"{tool} is on every node",
            action="Only suites that a site may lack are optional: omb, imb, skampi, npb, hpcc.",
        )
    return optional


def _optional(table: Table, key: str, low: int, high: int) -> int | None:
    return table.integer(key, low=low, high=high) if table.has(key) else None


def _each_algorithm(table: Table, benchmark: Benchmark) -> Iterator[Benchmark]:
    """Yield the benchmark, or a labelled one for each choice.

    An MPI benchmark may have several of Open MPI's `algorithms`, a command its `parameters`.
    """
    if benchmark.command is not None:
        chosen_by = command.each(table.table("parameters"), benchmark.label, benchmark.command)
        table.done()
        for label, one in chosen_by:
            yield replace(benchmark, label=label, command=one)
        return
    if benchmark.mpi is None or benchmark.test not in COLLECTIVES or not table.has("algorithms"):
        table.done()
        yield benchmark
        return
    for number in table.integers("algorithms", low=0, high=_MAX_ALGORITHMS):
        chosen = (
            "coll_tuned_use_dynamic_rules=1",
            f"coll_tuned_{benchmark.test}_algorithm={number}",
        )
        yield replace(
            benchmark,
            label=f"{benchmark.label}alg{number}",
            mpi=replace(benchmark.mpi, mca=(*benchmark.mpi.mca, *chosen)),
        )
    table.done()


def _sizes(table: Table, low: int, high: int, *, of_command: bool) -> tuple[int, ...]:
    """Return the sizes; a plan may omit them if the test has only one, or the command none."""
    if (low == high or of_command) and not table.has("sizes"):
        return (low,)
    return table.integers("sizes", low=low, high=high)


def _mpi(table: Table, tool: str, nodes: int) -> MpiPlan:
    ranks = table.integer("ranks", default=2, low=2, high=256)
    least = -(-ranks // nodes)
    pattern, words, default = _PROBLEMS.get(tool, ("", f"a setting of {tool}", ""))
    mpi = MpiPlan(
        ranks=ranks,
        ranks_per_node=table.integer("ranks_per_node", default=least, low=least, high=ranks - 1),
        method=table.choice("method", METHODS, default="osu"),
        window=table.integer("window", default=64, low=1, high=65536),
        yield_when_idle=table.flag("yield_when_idle", default=True),
        sweep=table.flag("sweep", default=True),
        mca=table.texts("mca"),
        problem=table.matching("problem", pattern, words, default=default),
    )
    for setting in mpi.mca:
        if not recipe.check_mca(setting):
            table.fail(
                "mca",
                f"{quote(setting)} is not an Open MPI parameter that a plan may set",
                action='For example: mca = ["coll_tuned_use_dynamic_rules=1"].',
            )
    table.done()
    return mpi


def _cpu_util(table: Table, test: Test) -> bool:
    asked = table.flag("cpu_util")
    if asked and (test.tool, test.quantity) != ("perftest", "bandwidth"):
        table.fail(
            "cpu_util",
            f"{test.tool} {test.name} reports no CPU utilization: only perftest's bandwidth does",
            action='For any tool, use probes = ["rxecpu"].',
        )
    return asked


def _events(table: Table, test: Test) -> bool:
    asked = table.flag("events")
    if asked and (test.tool != "perftest" or test.name == "write_lat"):
        table.fail(
            "events",
            f"{test.tool} {test.name} waits for no completion event",
            action="Only perftest's tests other than write_lat do, which polls its memory.",
        )
    return asked


def _label(table: Table) -> str:
    label = table.text("label", default="")
    if label and not _LABEL.fullmatch(label):
        table.fail(
            "label", f"{quote(label)} cannot be a label", action="Use up to 20 of a-z and 0-9."
        )
    return label


def _refuse_parts(table: Table, test: Test, sizes: tuple[int, ...]) -> None:
    for size in sizes:
        if size % test.element:
            table.fail("sizes", f"{size} bytes is not a multiple of {test.element} bytes")


def _required_counterpart(table: Table, test: Test, transport: str) -> Test:
    measuring = counterpart(test, TRANSPORTS[transport])
    if measuring is None:
        able = [name for name, t in TRANSPORTS.items() if counterpart(test, t)]
        table.fail(
            "transports",
            f"{test.tool} {test.name} has no counterpart over {transport}",
            action=f"Give this benchmark its own line: transports = {able!r}.".replace("'", '"'),
        )
    return measuring


def _refuse_duplicates(top: Table, benchmarks: tuple[Benchmark, ...]) -> None:
    seen = set()
    for benchmark in benchmarks:
        key = (benchmark.tool, benchmark.title)
        if key in seen:
            top.fail(
                "benchmark",
                f"{benchmark.tool} {benchmark.title} appears twice",
                action="Merge their sizes, or give one a label: cells are named by tool, test and "
                "label.",
            )
        seen.add(key)
