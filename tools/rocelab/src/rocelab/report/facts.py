# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts of a run and its nodes, and how to reproduce it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rocelab import units
from rocelab.plans.catalog import OWN_HOSTS
from rocelab.record.read import Json, Run
from rocelab.record.text import one_line
from rocelab.report import wording
from rocelab.report.figure import Column, Note, Section, Table

_UNKNOWN = "not recorded"


def accelerators(run: Run) -> list[str]:
    """Return the accelerators of the run and of its results, each once."""
    named = [run.meta.text("accelerator"), *(item.accelerator for item in run.series)]
    return list(dict.fromkeys(name for name in named if name))


def repetitions(run: Run) -> str:
    """Return the planned number of repetitions as text."""
    return run.plan.text("repetitions", _UNKNOWN)


def _summary(run: Run) -> Table:
    """The run in a few lines."""
    return Table("The run", (Column("fact"), Column("value")), tuple(_facts(run)))


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    nodes = dict(run.meta.object("nodes").items())
    plan = run.meta.object("plan")
    testbed = plan.object("testbed")
    benchmarks = [
        f"{item.text('tool', '?')} {item.text('test', '?')}" for item in plan.objects("benchmark")
    ]
    provider = run.meta.object("testbed").text("provider") or testbed.text("provider", _UNKNOWN)
    started, ended = run.meta.text("started", _UNKNOWN), run.meta.text("ended", "not ended")
    return (
        ("Transports compared", units.listing(run.plan.texts("transports")) or _UNKNOWN),
        ("Benchmarks", units.listing(list(dict.fromkeys(benchmarks))) or _UNKNOWN),
        (
            "Accelerator",
            "; ".join(wording.accelerator_label(name) for name in accelerators(run)) or _UNKNOWN,
        ),
        ("Testbed", f"{provider}, {units.plural(len(nodes), 'node')}"),
        *_link(run, testbed),
        ("Kernel", _each(nodes, lambda node: node.text("kernel").partition(" ")[0])),
        ("Driver", _each(nodes, lambda node: _driver(node.object("driver")))),
        ("Processor", _each(nodes, lambda node: _processor(node.object("cpu")))),
        ("Link MTU", _each(nodes, lambda node: node.object("nic").text("mtu"))),
        ("Repetitions", repetitions(run)),
        ("Seed", run.plan.text("seed", _UNKNOWN)),
        ("Ran (UTC)", f"{_moment(started)} to {_moment(ended)}"),
        ("rocelab", run.meta.text("rocelab", _UNKNOWN)),
    )


_SHAPES = ("rate_mbit", "delay_us", "loss_ppm")


def switches(run: Run) -> int | None:
    """Switches between the first node and the others; None if not recorded, on your own hosts."""
    testbed = run.meta.object("plan").object("testbed")
    count = testbed.integer("switches")
    return 0 if count is None and testbed.text("provider") not in OWN_HOSTS else count


def _link(run: Run, testbed: Json) -> Iterator[tuple[str, str]]:
    """The link between the nodes, as the plan made it or describes it."""
    between = switches(run)
    theirs = testbed.text("provider") in OWN_HOSTS
    if between or (theirs and between is not None):
        yield (
            "Switches between the nodes",
            f"{between}{'; from the plan' if theirs else ''}",
        )
    rate, delay, loss = (testbed.object("link").integer(key) for key in _SHAPES)
    shaping = [
        *([f"at most {rate} Mbit/s"] if rate else []),
        *([f"{delay} \N{MICRO SIGN}s delay in each direction"] if delay else []),
        *([f"{loss} of a million packets lost"] if loss else []),
    ]
    if shaping:
        yield "Link, by netem at each sender", units.listing(shaping)


def _link_notes(testbed: Json) -> Iterator[Note]:
    if any(testbed.object("link").integer(key) for key in _SHAPES):
        yield Note(
            "By the plan, netem delays, throttles or drops what the data interfaces send. Delay "
            "and rate are part of every latency and of the stage xmit, which ends at the device. "
            "Packets that netem dropped are counted (link.dropped) and missing on the wire."
        )


def link_speeds(run: Run) -> dict[str, str]:
    """Return the nodes' link speeds by name, if they are not all the same."""
    nodes = run.meta.object("nodes").items()
    speeds = {name: node.object("settings").text("link speed", _UNKNOWN) for name, node in nodes}
    return speeds if len(set(speeds.values())) > 1 else {}


def section(run: Run) -> Section:
    """Return the section on the nodes; a note lists what differs between them."""
    nodes = dict(run.meta.object("nodes").items())
    notes = [
        Note(
            "The seed determines the order of cells. Each repetition runs every benchmark over "
            "every transport once, so a drift of the machine affects all of them equally."
        )
    ]
    notes += _link_notes(run.meta.object("plan").object("testbed"))
    if not nodes:
        notes.append(Note("run.json has no facts about the nodes.", "warning"))
        return Section(
            "where", "What was measured where and how", notes=tuple(notes), tables=(_summary(run),)
        )
    read = {
        label: tuple(fact(node) or units.ABSENT for node in nodes.values()) for label, fact in _ROWS
    }
    read = {
        label: values
        for label, values in read.items()
        if label not in _LATER or set(values) != {units.ABSENT}
    }
    first = _table(nodes, "The nodes before the first cell", read)
    groups = [
        _table(nodes, f"All {plural}", _members(nodes, plural))
        for plural in ("settings", "offloads", "interrupts", "sysctls", "packages")
    ]
    unlike = [
        row[0]
        for table in (first, *groups)
        for row in table.rows
        if len(set(row[1:])) > 1 and row[0] not in _OWN
    ]
    if unlike:
        notes.append(Note(f"The nodes differ in: {units.listing(unlike)}.", "warning"))
    elif len(nodes) > 1:
        notes.append(Note("In the facts below, the nodes differ only in their addresses."))
    return Section(
        "where",
        "What was measured where and how",
        notes=tuple(notes),
        tables=(
            _summary(run),
            first,
            *_testbed(run),
            *(replace(table, folded=True) for table in groups if table.rows),
        ),
    )


def _testbed(run: Run) -> Iterator[Table]:
    testbed = run.meta.object("testbed")
    rows = [
        (name.replace("_", " "), value)
        for prefix, group in (("", testbed), *((f"{key} ", item) for key, item in testbed.items()))
        for name, value in ((f"{prefix}{one_line(key)}", _state(group, key)) for key in group.data)
        if value != units.ABSENT
    ]
    if rows:
        yield Table(
            "The testbed, as its provider describes it",
            (Column("fact"), Column("value")),
            tuple(rows),
        )


def _members(nodes: dict[str, Json], plural: str) -> dict[str, tuple[str, ...]]:
    """Return every member of a group of facts, with each node's value."""
    groups = [_group(node, plural) for node in nodes.values()]
    keys = sorted({key for group in groups for key in group.data})
    return {one_line(key): tuple(_state(group, key) for group in groups) for key in keys}


def _state(group: Json, key: str) -> str:
    value = group.data.get(key)
    if isinstance(value, bool):
        return "on" if value else "off"
    return group.text(key, units.ABSENT)


def _table(nodes: dict[str, Json], caption: str, rows: dict[str, tuple[str, ...]]) -> Table:
    return Table(
        caption,
        (Column("fact"), *(Column(name) for name in nodes)),
        tuple((label, *values) for label, values in rows.items()),
    )


def reproduce(run: Run) -> Section:
    """Return the section on how to run it again."""
    name = run.plan.text("name", "demo")
    safe = name if name.replace("-", "").replace("_", "").isalnum() else "PLAN.toml"
    return Section(
        "reproduce",
        "How to reproduce this",
        notes=(
            Note(
                "run.json has the plan with all defaults filled in, and the seed. The first "
                "command runs the same plan again. The second makes this page again, byte for "
                "byte, using only run.json, cells/*/cell.json and results.parquet."
            ),
        ),
        command=f"rocelab run {safe}\nrocelab report runs/{_folder(run.name)}",
    )


def _moment(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z")


def _folder(name: str) -> str:
    return name if all(c.isalnum() or c in "-_." for c in name) else "RUN"


def _group(node: Json, group: str) -> Json:
    return node.object("nic").object(group) if group == "offloads" else node.object(group)


def _each(nodes: dict[str, Json], read: Callable[[Json], str]) -> str:
    values = {name: read(node) or _UNKNOWN for name, node in nodes.items()}
    if not values:
        return _UNKNOWN
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return "; ".join(f"{name}: {value}" for name, value in values.items())


def _driver(driver: Json) -> str:
    version = driver.text("version")
    return f"rdma_rxe {version}" if version else ""


def _processor(cpu: Json) -> str:
    count = cpu.integer("count")
    model = cpu.text("model")
    return f"{count} \N{MULTIPLICATION SIGN} {model}" if count is not None and model else model


_LATER = {"verbs driver", "RoCE MTU", "adapter", "adapter's driver", "adapter's MTU"}
"""Facts that runs of older versions, or runs over rxe, do not have."""
_OWN = {"address", "MAC address"}
"""Facts in which nodes always differ."""
_ROWS: tuple[tuple[str, Callable[[Json], str]], ...] = (
    ("kernel", lambda node: node.text("kernel")),
    ("processor", lambda node: _processor(node.object("cpu"))),
    ("rdma_rxe version", lambda node: node.object("driver").text("version")),
    ("rdma_rxe srcversion", lambda node: node.object("driver").text("srcversion")),
    ("rdma_rxe module", lambda node: node.object("driver").text("path")),
    ("verbs device", lambda node: node.object("verbs").text("device")),
    ("verbs driver", lambda node: node.object("verbs").text("driver")),
    ("RoCE MTU", lambda node: node.object("verbs").text("active_mtu")),
    ("adapter", lambda node: node.object("adapter").text("device")),
    ("adapter's driver", lambda node: node.object("adapter").text("driver")),
    ("adapter's MTU", lambda node: node.object("adapter").text("active_mtu")),
    ("network driver", lambda node: node.object("nic").text("driver")),
    ("link MTU", lambda node: node.object("nic").text("mtu")),
    ("address", lambda node: node.object("nic").text("ipv4")),
    ("MAC address", lambda node: node.object("nic").text("mac")),
    (
        "offloads that are on",
        lambda node: ", ".join(
            sorted(one_line(k) for k, on in _group(node, "offloads").data.items() if on is True)
        ),
    ),
    ("CRC-32 drivers", lambda node: ", ".join(node.texts("crc32_drivers"))),
)
