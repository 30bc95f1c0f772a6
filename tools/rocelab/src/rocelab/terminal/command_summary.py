# SPDX-License-Identifier: GPL-2.0-or-later
"""What `rocelab exec --watch` saw of a command: findings, then who carried what, at what cost.

A run folder's text is untrusted: it goes through `printable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console, RenderableType
from rich.text import Text

from rocelab import accelerators, capture, metrics, units
from rocelab.correlate.recovery import recovery
from rocelab.plans.catalog import Probe
from rocelab.record import layout, read
from rocelab.record.folder import RunFolder
from rocelab.terminal import capture_tables, grid, run_tables
from rocelab.terminal.printable import printable

_CARRIED = (
    ("RoCE v1", ("roce_v1",), ""),
    ("RoCE v2", ("roce_v2",), ""),
    ("RoCE messages", ("roce_data",), "roce_payload_bytes"),
    ("iWARP", ("iwarp",), "iwarp_payload_bytes"),
    ("TCP", ("tcp",), "tcp_payload_bytes"),
    ("other", ("other", "undecoded", "control"), ""),
)
"""A row, the kinds of frames in it, and their payload (docs/formats/run.md)."""


def show(run_dir: Path, console: Console) -> None:
    """Print the summary of a run of one command. Raises UsageError if it cannot be read."""
    folder = RunFolder(run_dir)
    plan = folder.plan()
    columns = console.width
    (cell,) = plan.cells()
    record = folder.record(cell.name) or {}
    wire = folder.cell(cell.name) / layout.step(cell.benchmark.sizes[0]) / layout.WIRE_CAPTURE
    if wire.is_file():
        console.print(_findings(wire))
    # none if the command did not end
    for step in record.get("steps", ()):
        console.print(*_of_wire(step, wire, record, columns), sep="\n")
    console.print(run_tables.render(run_dir, columns))
    if Probe.RXECPU in plan.probes:
        console.print(*_owners(read.results(run_dir), run_dir, columns), sep="\n")


def _findings(wire: Path) -> RenderableType:
    result = capture.analyze([str(wire)]).result
    if result["findings"]:
        return capture_tables.findings(result)
    packets = result["roce"]["packets"]
    summary = f"none in {units.plural(packets, 'packet')}" if packets else "no packet of RoCE"
    return Text(f"findings: {summary}")


def _of_wire(
    step: Mapping[str, Any], wire: Path, record: Mapping[str, Any], columns: int
) -> Iterator[RenderableType]:
    """What the capture of a step holds, and what the proof makes of it."""
    if step["frames"] is None:
        yield grid.paragraph("nothing captured the link", columns)
    else:
        yield grid.heading("Carried by", "", columns)
        rows = list(_frame_rows(step)) or [("nothing", "0", "")]
        yield from grid.fit(("", "frames", "payload bytes"), rows, columns)
        yield from _retransmissions(step, wire, record, columns)
    if step["proof"]["ok"]:
        yield Text(f"proven: {printable(str(step['proof']['transport']))} carried it")


def _frame_rows(step: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    frames = step["frames"]
    for label, kinds, payload in _CARRIED:
        if count := sum(int(frames[kind]) for kind in kinds):
            yield label, f"{count:,}", f"{int(frames[payload]):,}" if payload else ""


def _retransmissions(
    step: Mapping[str, Any], wire: Path, record: Mapping[str, Any], columns: int
) -> Iterator[RenderableType]:
    """What was lost on purpose, what was sent again and why, and what faults met."""
    client = str(step["ends"][record["client"]]["ipv4"])
    result = recovery(wire, client, ())
    again = {end: count for end, count in result.sent_again.items() if count}
    lines = []
    links = [moved.get("link", {}) for moved in step["counters"].values()]
    dropped = sum(int(link.get("dropped", 0)) for link in links)
    if dropped:
        lines.append(f"dropped by the shaped link: {units.plural(dropped, 'packet')}")
    ends = ", ".join(f"{end} {count}" for end, count in again.items())
    causes = ", ".join(f"{printable(why)} {count}" for why, count in result.causes.items())
    if step["frames"]["roce_v1"] + step["frames"]["roce_v2"]:
        lines.append(f"sent again: {ends} ({causes})" if ends else "sent again: nothing")
    if result.naks:
        lines.append(f"NAKs: {', '.join(f'{kind} {count}' for kind, count in result.naks.items())}")
    if "faults" in step:
        never = [printable(str(name)) for name in step["faults"]["never_met"]]
        lines.append(f"faults that met no packet: {', '.join(never) or 'none'}")
    yield from (grid.paragraph(line, columns) for line in lines)


def _owners(table: pl.DataFrame, run_dir: Path, columns: int) -> Iterator[RenderableType]:
    """Whose work the processors did, by node."""
    sums: dict[str, dict[str, float]] = {}
    rows = table.filter(kind="time")
    for metric, node, value in rows.select("metric", "node", "value").iter_rows():
        account = metrics.Account.parse(metric)
        if account is not None and "." not in account.context:
            by_node = sums.setdefault(account.owner, {})
            by_node[node] = by_node.get(node, 0.0) + value
    nodes = sorted({node for by_node in sums.values() for node in by_node})
    if not nodes:
        return
    counts = accelerators.of(str(RunFolder(run_dir).meta()["accelerator"])).counts_instructions
    unit = "thousand instructions" if counts else "µs"
    yield grid.heading("Processors, by whose work", f"{unit}, with the probes", columns)
    ranked = sorted(sums, key=lambda owner: -sum(sums[owner].values()))
    lines = [
        (printable(owner), *(f"{sums[owner].get(node, 0.0) / 1e3:,.0f}" for node in nodes))
        for owner in ranked
    ]
    yield from grid.fit(("owner", *nodes), lines, columns)
