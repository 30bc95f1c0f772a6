# SPDX-License-Identifier: GPL-2.0-or-later
"""What was measured where and how: the facts of a run, its nodes, and how to run it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rocelab.report import fmt, wording
from rocelab.report.figure import Column, Note, Section, Table
from rocelab.report.runfolder import Json, Run, clean

_UNKNOWN = "not recorded"


def accelerators(run: Run) -> list[str]:
    """Return the accelerators of the run and of its results, each once."""
    named = [run.meta.text("accelerator"), *(item.accelerator for item in run.series)]
    return list(dict.fromkeys(name for name in named if name))


def repetitions(run: Run) -> str:
    """Return the planned number of repetitions as text."""
    return run.plan.text("repetitions", _UNKNOWN)


def facts(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the headline box: label and value pairs."""
    nodes = dict(run.meta.object("nodes").items())
    plan = run.meta.object("plan")
    testbed = plan.object("testbed")
    benchmarks = [
        f"{item.text('tool', '?')} {item.text('test', '?')}" for item in plan.objects("benchmark")
    ]
    provider = run.meta.object("testbed").text("provider") or testbed.text("provider", _UNKNOWN)
    started, ended = run.meta.text("started", _UNKNOWN), run.meta.text("ended", "not ended")
    return (
        ("Transports compared", fmt.listing(run.plan.texts("transports")) or _UNKNOWN),
        ("Benchmarks", fmt.listing(list(dict.fromkeys(benchmarks))) or _UNKNOWN),
        (
            "Accelerator",
            "; ".join(wording.accelerator_label(name) for name in accelerators(run)) or _UNKNOWN,
        ),
        ("Testbed", f"{provider}, {fmt.plural(len(nodes), 'node')}"),
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
    """Between the first node and the others; None: of hosts of one's own, nobody said."""
    testbed = run.meta.object("plan").object("testbed")
    found = testbed.integer("switches")
    return 0 if found is None and testbed.text("provider") != "ssh" else found


def _link(run: Run, testbed: Json) -> Iterator[tuple[str, str]]:
    """What the plan put between the nodes, or says of what was there."""
    between = switches(run)
    theirs = testbed.text("provider") == "ssh"
    if between or (theirs and between is not None):
        yield "Switches between the nodes", f"{between}{', as the plan says' if theirs else ''}"
    rate, delay, loss = (testbed.object("link").integer(key) for key in _SHAPES)
    said = [
        *([f"{rate} Mbit/s at most"] if rate else []),
        *([f"{delay} \N{MICRO SIGN}s later in each direction"] if delay else []),
        *([f"{loss} of a million packets lost"] if loss else []),
    ]
    if said:
        yield "Link, by netem at each sender", fmt.listing(said)


def _shaped(testbed: Json) -> Iterator[Note]:
    if any(testbed.object("link").integer(key) for key in _SHAPES):
        yield Note(
            "The plan has netem delay, throttle or lose what the data interfaces send. A delay and "
            "a rate are part of every latency and of the stage xmit, which ends at the device; "
            "packets that netem lost were counted there (link.dropped), and are missing on the "
            "wire for that reason alone."
        )


def section(run: Run) -> Section:
    """Return the section on the nodes, with what differs between them set apart."""
    nodes = dict(run.meta.object("nodes").items())
    notes = [
        Note(
            "The order of cells is drawn from the seed: each repetition holds every benchmark over "
            "every transport once, so that a drift of the machine falls on all alike."
        )
    ]
    notes += _shaped(run.meta.object("plan").object("testbed"))
    if not nodes:
        notes.append(Note("run.json says nothing of the nodes.", "warning"))
        return Section("where", "What was measured where and how", notes=tuple(notes))
    read = {label: tuple(of(node) or fmt.ABSENT for node in nodes.values()) for label, of in _ROWS}
    read = {
        label: values
        for label, values in read.items()
        if label not in _LATER or set(values) != {fmt.ABSENT}
    }
    first = _table(nodes, "The nodes, as they were read before the first cell", read)
    groups = [
        _table(nodes, f"All {plural}", _members(nodes, plural))
        for plural in ("offloads", "interrupts", "sysctls", "packages")
    ]
    unlike = [
        row[0]
        for table in (first, *groups)
        for row in table.rows
        if len(set(row[1:])) > 1 and row[0] not in _OWN
    ]
    if unlike:
        notes.append(
            Note(f"The nodes differ in: {fmt.listing(unlike)}. Keep it in mind.", "warning")
        )
    elif len(nodes) > 1:
        notes.append(Note("The nodes are alike in everything below but their addresses."))
    return Section(
        "where",
        "What was measured where and how",
        notes=tuple(notes),
        tables=(
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
        for name, value in ((f"{prefix}{clean(key)}", _state(group, key)) for key in group.data)
        if value != fmt.ABSENT
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
    return {clean(key): tuple(_state(group, key) for group in groups) for key in keys}


def _state(group: Json, key: str) -> str:
    value = group.data.get(key)
    if isinstance(value, bool):
        return "on" if value else "off"
    return group.text(key, fmt.ABSENT)


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
                "run.json holds the plan with every default filled in, and the seed. The same plan "
                "runs again with the first command; the second makes this page again from the run "
                "folder, byte for byte, from run.json, cells/*/cell.json and results.parquet alone."
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
"""Facts that runs of older versions do not have, or runs over rxe."""
_OWN = {"address", "MAC address"}
"""Facts in which nodes must differ."""
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
            sorted(clean(k) for k, on in _group(node, "offloads").data.items() if on is True)
        ),
    ),
    ("CRC-32 drivers", lambda node: ", ".join(node.texts("crc32_drivers"))),
)
