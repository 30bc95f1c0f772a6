# SPDX-License-Identifier: GPL-2.0-or-later
"""Make results.parquet from a run folder (docs/formats/results.md), always the same one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocelab import limits, metrics
from rocelab.conditions import lack, system_error
from rocelab.directory import Directory
from rocelab.errors import CellError, UsageError
from rocelab.measure import join_values, message_cost
from rocelab.measure.mpi import mpi_step
from rocelab.measure.pair_step import job_of
from rocelab.plans.benchmarks.mpi.suite import Sweep
from rocelab.plans.benchmarks.mpi.suites import SUITES
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import Measurement, Value
from rocelab.plans.catalog import Family, Kind
from rocelab.plans.plan import Cell
from rocelab.record import adapter, layout, read, results_table, rxecpu_document, rxestat_document
from rocelab.record.folder import RunFolder, report_again
from rocelab.record.rxecpu_document import Traffic
from rocelab.record.rxestat_document import Stages

_RXE_PACKETS = ("sent_pkts", "rcvd_pkts")
_MIN_WORK_STEPS = 100
"""Work that is known in steps is a cost from so many steps on: two readings are off by a step."""


def rebuild(run_dir: Path) -> Path:
    """Write results.parquet from the run's good cells; return its path.

    Raises UsageError when the folder is no run, or the files of a good cell cannot be read again,
    and MissingError if this machine lacks what that takes.
    """
    folder = RunFolder(run_dir)
    meta = folder.meta()
    rows = [row for cell in folder.plan().cells() for row in _cell_rows(folder, meta, cell)]
    try:
        return results_table.write(folder.path, rows)
    except OSError as error:
        raise system_error(
            error,
            f"cannot write {folder.path / layout.RESULTS}",
            action=report_again(folder.path),
        ) from error


def repair(run_dir: Path) -> bool:
    """Rebuild results.parquet where it is missing or damaged; return whether it was.

    Raises UsageError when that takes raw output that is not there. Nothing is written then.
    """
    try:
        read.results(run_dir)
    except results_table.UnreadableError as damage:
        try:
            rebuild(run_dir)
        except UsageError as error:
            raise UsageError(
                damage.what,
                cause=f"{damage.cause}; and it cannot be made again: {error.what}",
                action="Copy results.parquet again from where the run was measured.",
            ) from error
        return True
    return False


def _cell_rows(folder: RunFolder, meta: Mapping[str, Any], cell: Cell) -> Iterator[tuple[Any, ...]]:
    record = folder.record(cell.name)
    if record is None:
        return
    try:
        is_usable = read.Cell(cell.name, read.Json(record)).is_usable
        for step in record["steps"] if is_usable else ():
            driver = _driver(meta, cell, record["client"])
            for size, node, value in _step_values(folder, cell, record, step):
                if math.isfinite(value.value):
                    yield (
                        *(folder.name, cell.benchmark.tool, cell.benchmark.title),
                        *(cell.transport.name, cell.repetition, size, node),
                        *(value.metric, str(value.kind), float(value.value)),
                        results_table.unit(value.metric, value.unit, meta["accelerator"]),
                        *(meta["accelerator"], driver, cell.test.program),
                    )
    except (CellError, OSError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{cell.name} cannot be read again"
        if isinstance(error, PermissionError):
            raise system_error(error, what) from error
        known = lack(error, what) if isinstance(error, OSError) else None
        raise known or UsageError(
            f"{what}: {error!a:.200}",
            cause="its files were changed or taken away after it was measured",
            action=f"Remove {folder.cell(cell.name)} and run with --resume.",
        ) from error


def _step_values(
    folder: RunFolder, cell: Cell, record: Mapping[str, Any], step: Mapping[str, Any]
) -> Iterator[tuple[int | None, str, Value]]:
    """(size, node, value) of one step; size is None for what is of all its sizes together."""
    size = None if step["size"] is None else int(step["size"])
    with folder.step(cell.name, size) as raw:
        by_size, sent = _measurements(cell, step, raw)
        measured = () if cell.benchmark.mpi or size is None else by_size[size]
        if "timing" in step:
            with raw.folder(layout.TIMING) as apart:
                timed, _ = _measurements(cell, step["timing"], apart)
        else:
            timed = by_size
        for one_size, values in timed.items():
            yield from ((one_size, record["client"], value) for value in values)
        if timed is not by_size:
            for one_size, values in by_size.items():
                yield from ((one_size, record["client"], _while_watched(value)) for value in values)
        for node, value in _watched_values(cell, record, step, raw, measured, sent):
            yield size, node, value
        few = _few(cell, step, raw)
        for node, value in (
            *_message_costs(step, raw),
            *_kernel_costs(cell, step, raw, sent, few),
            *_more_cycles(step, raw, sent - few),
        ):
            yield size, node, value


def _message_costs(step: Mapping[str, Any], raw: Directory) -> Iterator[tuple[str, Value]]:
    """(machine, value) of what one more message costs; nothing of a step with a single count."""
    full = step.get(layout.TIMING, step)
    if layout.EIGHTH not in step:
        return
    for machine in full.get("work_ns", {}):
        passes = [step[layout.EIGHTH], full, step[layout.HALF]]
        if any(machine not in one.get("work_ns", {}) for one in passes):
            continue
        few, many, half = (_point(one, machine) for one in passes)
        step_ns = max(one.get("work_step_ns", {}).get(machine, 0) for one in passes)
        if many.work - few.work < _MIN_WORK_STEPS * step_ns:
            continue
        total = list(message_cost.values(few, many, half))
        yield from ((machine, value) for value in total)
        if busy := [one["others"][machine] for one in passes if machine in one.get("others", {})]:
            yield machine, Value(metrics.OTHERS, "cores", sum(busy) / len(busy), "1")
        if not total or layout.EIGHTH_WATCHED not in step:
            continue
        with raw.folder(layout.EIGHTH_WATCHED) as apart:
            first = _watched_point(step[layout.EIGHTH_WATCHED], apart, machine)
        last = _watched_point(step, raw, machine)
        if first and last:
            split = list(message_cost.parts(first, last, total[0].value))
            kernel = message_cost.of_kernel(split, int(step["size"] or 0))
            yield from ((machine, value) for value in (*split, *kernel))


def _few(cell: Cell, step: Mapping[str, Any], raw: Directory) -> int:
    """How many messages an eighth is, that probes watched; 0 if there is no such pass."""
    if layout.EIGHTH_WATCHED not in step:
        return 0
    part = cell.with_part(layout.PARTS[layout.EIGHTH_WATCHED])
    with raw.folder(layout.EIGHTH_WATCHED) as apart:
        return _measurements(part, step[layout.EIGHTH_WATCHED], apart)[1]


def _more_cycles(step: Mapping[str, Any], raw: Directory, more: int) -> Iterator[tuple[str, Value]]:
    """(machine, value) of its kernel's cycles for one more message."""
    if layout.EIGHTH_WATCHED not in step or more <= 0:
        return
    with raw.folder(layout.EIGHTH_WATCHED) as apart:
        few = _cycles_seen(_stages_by_node(step, apart))
    for machine, cycles in _cycles_seen(_stages_by_node(step, raw)).items():
        if machine in few:
            each = (cycles - few[machine]) / more
            yield machine, Value(metrics.KERNEL_CYCLES, metrics.MARGINAL, each, metrics.CYCLES)


def _kernel_costs(
    cell: Cell, step: Mapping[str, Any], raw: Directory, sent: int, few: int
) -> Iterator[tuple[str, Value]]:
    """(machine, value) of what one more message costs the kernel, where the program polls."""
    if layout.EIGHTH in step or layout.EIGHTH_WATCHED not in step:
        return
    eighth = step[layout.EIGHTH_WATCHED]
    with raw.folder(layout.EIGHTH_WATCHED) as apart:
        first = {
            machine: (split, _rxestat_ns(apart, machine))
            for machine, _, split in rxecpu_document.splits(apart, tuple(eighth["counters"]))
        }
    more = sent - few
    for machine, _, many in rxecpu_document.splits(raw, tuple(step["counters"])):
        if machine in first and more > 0:
            split, own = first[machine]
            stated = (_rxestat_ns(raw, machine) - own) / more
            by_calls = cell.benchmark.waits_by_calls
            parts = list(message_cost.in_kernel(split, many, more, stated, polls_by_calls=by_calls))
            kernel = message_cost.of_kernel(parts, int(step["size"] or 0))
            yield from ((machine, value) for value in (*parts, *kernel))


def _rxestat_ns(raw: Directory, machine: str) -> float:
    """What rxestat says that it took on a machine; 0 where it did not run."""
    return sum(
        rxestat_document.read(raw, node).own_ns
        for node in machine.split("+")
        if raw.exists(rxestat_document.file_name(node))
    )


def _point(one: Mapping[str, Any], machine: str) -> message_cost.Point:
    return message_cost.Point(int(one["sent"]), int(one["work_ns"][machine]))


def _watched_point(
    one: Mapping[str, Any], raw: Directory, machine: str
) -> message_cost.Watched | None:
    """One pass that probes watched; None without rxecpu, or without a count of the work."""
    if machine not in one.get("work_ns", {}) or not raw.exists(rxecpu_document.file_name(machine)):
        return None
    split = rxecpu_document.read(raw, machine)
    return message_cost.Watched(_point(one, machine), split, _rxestat_ns(raw, machine))


def _measurements(
    cell: Cell, step: Mapping[str, Any], raw: Directory
) -> tuple[Mapping[int, tuple[Value, ...]], int]:
    """What the benchmark said of each size, and how many messages it sent if they are of one."""
    if cell.benchmark.mpi is None:
        size = int(step["size"])
        if cell.benchmark.measures_its_end:
            return {size: ()}, 0
        measurement = _reparse(cell, step, raw)
        return {size: measurement.values}, measurement.sent
    sweep = _reparse_mpi(cell, step, raw)
    return sweep.values, 0 if step["size"] is None else sweep.sent.get(int(step["size"]), 0)


def _while_watched(value: Value) -> Value:
    return replace(value, metric=metrics.Watched(value.metric).name)


def _watched_values(
    cell: Cell,
    record: Mapping[str, Any],
    step: Mapping[str, Any],
    raw: Directory,
    measured: Iterable[Value],
    sent: int,
) -> Iterator[tuple[str, Value]]:
    """(node, value) of what was watched during one step, in which the benchmark sent `sent`."""
    if sent:
        yield record["client"], Value(metrics.MESSAGES, "counter", sent, "1")
    if step.get("path_mtu") is not None:
        yield record["client"], Value(metrics.PATH_MTU, "setting", int(step["path_mtu"]), "bytes")
    for node, counters in step["counters"].items():
        yield from ((node, value) for value in _counter_values(counters))
    if step["frames"] is not None:
        for value in _wire_values(step["frames"], cell.transport.family):
            yield results_table.WIRE, value
    seen = _stages_by_node(step, raw)
    for node, stages in seen.items():
        yield from ((node, value) for value in stages.values())
    yield from _cycles(seen, sent)
    if not step.get("capture", {}).get("not_kept"):  # what is not in the file joins with nothing
        yield from join_values.values(raw)
    for machine, nodes, split in rxecpu_document.splits(raw, tuple(step["counters"])):
        traffic = _traffic(cell, step, nodes, sent)
        yield from ((machine, value) for value in split.values(traffic))
    if len(seen) == 2:
        yield from (
            (record["client"], value) for value in _coverage(cell, step, measured, seen.values())
        )


def _reparse(cell: Cell, step: Mapping[str, Any], raw: Directory) -> Measurement:
    output = raw.read(layout.output("client"), limit=limits.MAX_RAW_BYTES)
    # only a user's command may print anything else
    text = output.decode("utf-8", "replace" if cell.benchmark.command else "strict")
    job = replace(job_of(cell, int(step["size"])), wall_ns=int(step.get("wall_ns", 0)))
    return TOOLS[cell.test.tool].parse(job, text)


def _reparse_mpi(cell: Cell, step: Mapping[str, Any], raw: Directory) -> Sweep:
    job = mpi_step.job_of(cell, tuple(int(size) for size in step["sizes"]))
    suite = SUITES[cell.test.tool]
    return suite.parse(job, mpi_step.read_output(suite, raw))


def _counter_values(counters: Mapping[str, Mapping[str, int]]) -> Iterator[Value]:
    for name, moved in counters["rxe"].items():
        yield _counter_value("driver", name, moved)
    for name, moved in counters["netdev"].items():
        yield _counter_value("netdev", name, moved)
    for name, moved in counters.get("link", {}).items():
        yield _counter_value("link", name, moved)
    for name, moved in counters.get("adapter", {}).items():
        yield _counter_value("adapter", name, moved)
    for name, moved in counters.get("tcp", {}).items():
        yield _counter_value("tcp", name, moved)


def _counter_value(group: str, name: str, moved: int) -> Value:
    metric = metrics.Counter(group, name)
    return Value(metric.name, "counter", moved, metric.unit)


def _wire_values(frames: Mapping[str, int], family: Family) -> Iterator[Value]:
    for kind in ("roce_v1", "roce_v2", "tcp", "other"):
        yield Value(metrics.WIRE_FRAMES, kind, frames[kind], "1")
    # of the benchmark's own packets: what TCP carries in a RoCE cell is the rendezvous
    kind = "tcp" if family == "tcp" else "roce"
    data, payload = frames[f"{kind}_data"], frames[f"{kind}_payload_bytes"]
    yield Value(metrics.DATA_FRAMES, kind, data, "1")
    yield Value(metrics.PAYLOAD_BYTES, kind, payload, "bytes")
    if data:
        headers = (frames[f"{kind}_data_bytes"] - payload) / data
        yield Value(metrics.HEADER_BYTES, kind, headers, "bytes")


def _traffic(cell: Cell, step: Mapping[str, Any], nodes: Iterable[str], sent: int) -> Traffic:
    """What CPU time is divided by; a node's packets are the driver's, or for TCP its interface's.

    The rendezvous of a RoCE benchmark is not in its driver's counters, nor in the payload. Messages
    are those that the benchmark says it sent, which is all that is known of an adapter's.
    """
    # a step of many sizes has no single size, and a barrier's is 0
    size = int(step["size"] or 0)
    tcp = cell.transport.family == "tcp"
    if cell.transport.by == "adapter" and not tcp:
        moved = [
            adapter.sent_and_received(step["counters"][node].get("adapter", {})) for node in nodes
        ]
        packets = sum((each.sent or 0) + (each.received or 0) for each in moved)
        return Traffic(packets=packets, messages=sent, megabytes=sent * size / 1e6)
    group, names = ("netdev", ("tx_packets", "rx_packets")) if tcp else ("rxe", _RXE_PACKETS)
    payload = step["frames"]["tcp_payload_bytes" if tcp else "roce_payload_bytes"]
    return Traffic(
        packets=sum(step["counters"][node][group].get(name, 0) for node in nodes for name in names),
        messages=sent or _messages_by_bytes(cell, payload, size),
        megabytes=payload / 1e6,
    )


def _messages_by_bytes(cell: Cell, payload: int, size: int) -> float:
    """Messages by the bytes on the wire; among them are those that an MPI library adds."""
    return payload / size if size and cell.benchmark.mpi is None else 0


def _stages_by_node(step: Mapping[str, Any], raw: Directory) -> dict[str, Stages]:
    """What rxestat saw at each node."""
    return {
        node: rxestat_document.read(raw, node)
        for node in step["counters"]
        if raw.exists(rxestat_document.file_name(node))
    }


def _cycles_seen(seen: Mapping[str, Stages]) -> dict[str, int]:
    """The cycles of each machine's kernel, named by its nodes, where they were counted."""
    sharing: dict[str, list[str]] = {}
    for node, stages in seen.items():
        sharing.setdefault(stages.machine or node, []).append(node)
    counted = {"+".join(nodes): seen[nodes[0]].cycles for nodes in sharing.values()}
    return {machine: cycles for machine, cycles in counted.items() if cycles is not None}


def _cycles(seen: Mapping[str, Stages], sent: int) -> Iterator[tuple[str, Value]]:
    """(machine, value) of its kernel's cycles while rxestat saw these packets."""
    for machine, cycles in _cycles_seen(seen).items():
        packets = sum(seen[node].moved for node in machine.split("+"))
        for kind, amount in (("counter", 1), ("per_message", sent), ("per_packet", packets)):
            if amount:
                value = Value(metrics.KERNEL_CYCLES, kind, cycles / amount, metrics.CYCLES)
                yield machine, value


def _coverage(
    cell: Cell, step: Mapping[str, Any], measured: Iterable[Value], seen: Iterable[Stages]
) -> Iterator[Value]:
    """How much of a one-packet message's latency the stages at both ends explain.

    Half a round trip is one message there or one back: each is a packet sent by one node and
    received by the other, so the mean of both directions is half the sum over both nodes.
    """
    data = cell.test.data_class
    latency = next((v.value for v in measured if v.metric == metrics.LATENCY), None)
    one_packet = step["path_mtu"] is not None and int(step["size"]) <= int(step["path_mtu"])
    if data is None or latency is None or not one_packet or cell.test.kind is Kind.ROUND_TRIP:
        return
    explained = sum(stages.on_the_way(data) for stages in seen) / 2
    for name, value in (
        ("total", latency),
        ("stages", explained),
        ("outside", latency - explained),
    ):
        yield Value(metrics.Coverage(name).name, str(cell.test.kind), value, "ns")


def _driver(meta: Mapping[str, Any], cell: Cell, node: str) -> str:
    """The driver whose numbers these are, as the column `driver` names it."""
    facts = meta["nodes"][node]
    if cell.transport.by == "adapter":
        device = facts.get("adapter") or facts["verbs"] or {}
        return str(device.get("driver") or facts["nic"]["driver"] or "unknown")
    if cell.transport.is_rxe:
        return f"rdma_rxe {facts['driver']['version'] or '(stock)'}"
    return str(facts["nic"]["driver"] or "unknown")
