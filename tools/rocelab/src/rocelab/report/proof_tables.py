# SPDX-License-Identifier: GPL-2.0-or-later
"""Which transport carried each cell, proven by the wire, and which cells failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rocelab import units
from rocelab.plans.catalog import OWN_HOSTS, TRANSPORTS, Provider
from rocelab.record.read import Cell, Json, Run
from rocelab.report import adapter_tables
from rocelab.report.figure import Column, Note, Section, Table

_UNCAPTURED = (
    "Nothing captured the link: {}. Only counters at both nodes prove the transport: the adapter "
    "(hw-v1, hw-v2, ib, iwarp), or the interface and TCP (tcp, ipoib), must have sent at least "
    "what the benchmark did, and rxe nothing. These counters include the traffic of other programs."
)
_BY_ADAPTER = (
    "No capture on a host sees packets that an adapter makes (hw-v1, hw-v2, ib, ipoib, iwarp); "
    "those of soft iWARP, which counts nothing, it does see. There the "
    "proof is that the adapter's counters at both ends rose by at least what the benchmark sent, "
    "and that the host's network stack carried no more than the rendezvous. The columns of the "
    "driver and of the frames are empty or zero."
)


@dataclass(frozen=True)
class Evidence:
    """What counters and capture show for a cell, summed over its sizes; None if not recorded."""

    sent: int | None
    received: int | None
    roce_v1: int | None
    roce_v2: int | None
    tcp: int | None
    passed: int
    checks: int
    failed: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """`proven` only if there were checks and all passed."""
        if not self.checks:
            return "not judged"
        return "proven" if self.passed == self.checks else "not proven"


def evidence(cell: Json) -> Evidence:
    """Summarize a cell's evidence."""
    steps = cell.objects("steps")
    checks = [(step, check) for step in steps for check in step.object("proof").objects("checks")]
    failed = tuple(
        f"{units.size(step.integer('size') or 0)}: {check.text('check', 'a check')}, "
        f"expected {check.text('expected', '?')}, found {check.text('found', '?')}"
        for step, check in checks
        if check.data.get("ok") is not True
    )
    return Evidence(
        sent=_counters(steps, "sent_pkts"),
        received=_counters(steps, "rcvd_pkts"),
        roce_v1=_total(step.object("frames").integer("roce_v1") for step in steps),
        roce_v2=_total(step.object("frames").integer("roce_v2") for step in steps),
        tcp=_total(step.object("frames").integer("tcp") for step in steps),
        passed=len(checks) - len(failed),
        checks=len(checks),
        failed=failed,
    )


def section(run: Run) -> Section:
    """Return the section on the proof of transport."""
    if not run.cells:
        return Section(
            "proof",
            "Proof of transport",
            notes=(Note("This run has no cells, so nothing was proven.", "warning"),),
        )
    where, uncaptured = _where_captured(run), _cells_without_capture(run)
    rows = []
    failures = []
    for cell in run.cells:
        if cell.content is None:
            rows.append((cell.name, units.ABSENT, "missing", *[units.ABSENT] * 6))
            continue
        proven = evidence(cell.content)
        rows.append(
            (
                cell.name,
                cell.content.text("transport", units.ABSENT),
                proven.verdict,
                f"{proven.passed} of {proven.checks}",
                *(
                    units.integer(count) if count is not None else units.ABSENT
                    for count in (
                        proven.sent, proven.received, proven.roce_v1, proven.roce_v2, proven.tcp,
                    )
                ),
            )
        )  # fmt: skip
        failures += [(cell.name, text) for text in proven.failed]
    counts = Table(
        "Per cell, summed over its sizes: packets by the driver's counters at both nodes"
        + ("" if uncaptured else f", frames in the capture taken {where}"),
        (
            Column("cell", name=True),
            Column("transport"),
            Column("verdict"),
            Column("checks passed", numeric=True),
            Column("sent_pkts", numeric=True),
            Column("rcvd_pkts", numeric=True),
            Column("RoCE v1 frames", numeric=True),
            Column("RoCE v2 frames", numeric=True),
            Column("TCP frames", numeric=True),
        ),
        tuple(rows),
    )
    tables = [counts]
    if failures:
        tables.append(
            Table(
                "Failed checks",
                (Column("cell", name=True), Column("check")),
                tuple(failures),
            )
        )
    transports = (cell.content.text("transport") for cell in run.cells if cell.content)
    by_adapter = adapter_tables.adapters_of(transports)
    return Section(
        "proof",
        "Proof of transport",
        notes=(
            Note(_UNCAPTURED.format(uncaptured), "warning")
            if uncaptured
            else Note(
                "A number is labelled with a transport only if two independent sources prove it: "
                "the driver's packet counters, and a capture of the link taken "
                f"{where}. Over RoCE v2, packets sent, packets received and frames on the link "
                "must be equal; over TCP, the driver's counters must not change. A cell that "
                "fails these checks is an error, and its numbers are not used."
            ),
            *((Note(_BY_ADAPTER),) if by_adapter and not uncaptured else ()),
            *_header_only_notes(run),
            *_file_bound_notes(run),
            *_lost_frame_notes(run),
            *_dropped_packet_notes(run),
        ),
        tables=tuple(tables),
    )


def _cells_without_capture(run: Run) -> str:
    """Why steps have no capture; empty if all have one."""
    steps = (step for cell in run.cells if cell.content for step in cell.content.objects("steps"))
    reasons = dict.fromkeys(step.object("capture").text("missing", "") for step in steps)
    return "; ".join(reason for reason in reasons if reason)


def _header_only_notes(run: Run) -> Iterator[Note]:
    """Say in how many cells the capture kept only the headers of RoCE frames."""
    cells_by_length: Counter[int] = Counter()
    for cell in run.cells:
        transport = TRANSPORTS.get(cell.content.text("transport")) if cell.content else None
        if cell.content is None or (transport and transport.family == "tcp"):
            continue
        captures = [step.object("capture") for step in cell.content.objects("steps")]
        lengths = {c.integer("snaplen") for c in captures if c.data.get("whole_frames") is False}
        cells_by_length.update(length for length in lengths if length is not None)
    for length, cells in sorted(cells_by_length.items()):
        yield Note(
            f"In {units.plural(cells, 'cell')} with many bytes the capture keeps the first "
            f"{length} bytes of each RoCE frame. All frames are counted; their "
            "ICRCs cannot be verified."
        )


def _file_bound_notes(run: Run) -> Iterator[Note]:
    """Say how many frames were counted beyond the bound of a capture's file."""
    not_kept = [
        step.object("capture").integer("not_kept") or 0
        for cell in run.cells
        if cell.content
        for step in cell.content.objects("steps")
    ]
    steps = sum(count > 0 for count in not_kept)
    if beyond := sum(max(0, count) for count in not_kept):
        yield Note(
            f"Captures of {units.plural(steps, 'step')} are bounded: "
            f"{units.integer(beyond)} later frames were counted where they were captured, and are "
            "not in wire.pcap."
        )


def _lost_frame_notes(run: Run) -> Iterator[Note]:
    """Say in which cells the capture could not keep up."""
    by_cell: Counter[str] = Counter()
    for cell in run.cells:
        steps = cell.content.objects("steps") if cell.content else ()
        by_cell[cell.name] = sum(step.object("capture").integer("lost") or 0 for step in steps)
    if listed := _list_counts(by_cell):
        yield Note(
            f"The capture lost frames, because they came faster than they were written ({listed}). "
            "The counters of sender and receiver agree on these packets; wire.pcap lacks them.",
            "warning",
        )


def _dropped_packet_notes(run: Run) -> Iterator[Note]:
    """Say in which cells packets did not reach the link, though the plan drops none."""
    if run.meta.object("plan").object("testbed").object("link").integer("loss_ppm"):
        return
    by_cell: Counter[str] = Counter()
    for cell in run.cells:
        for step in cell.content.objects("steps") if cell.content else ():
            nodes = step.object("counters").items()
            dropped = (counters.object("link").integer("dropped") or 0 for _, counters in nodes)
            by_cell[cell.name] += sum(dropped)
    if listed := _list_counts(by_cell):
        yield Note(
            f"A sender's queueing discipline dropped packets before the link ({listed}): fq_codel "
            "drops what a busy host lets wait for over 100 ms. The latencies contain the waits.",
            "warning",
        )


def _list_counts(by_cell: Counter[str]) -> str:
    return units.listing([f"{name}: {count}" for name, count in (+by_cell).items()])


def _where_captured(run: Run) -> str:
    provider = run.meta.object("testbed").text("provider")
    if provider in OWN_HOSTS:
        return "on the hosts themselves"
    if provider == Provider.VETH:
        return "on the machine that hosts both nodes, where frames arrive"
    return "outside the nodes"


def errors(run: Run) -> Section:
    """Return the section on what went wrong."""
    rows = tuple((cell.name, *_error(cell)) for cell in run.cells if cell.status != "ok")
    if not rows:
        text = (
            f"None: {units.plural(len(run.cells), 'cell')} of {len(run.cells)} succeeded."
            if run.cells
            else "No cell ran, so none failed."
        )
        return Section("errors", "Errors", notes=(Note(text),))
    kinds = [cell.content.object("error").text("kind") for cell in run.cells if cell.content]
    used = (
        "none of their numbers, except of the sizes that a stalled cell finished"
        if "stall" in kinds
        else "none of their numbers"
    )
    return Section(
        "errors",
        "Errors",
        notes=(
            Note(
                f"{len(rows)} of {units.plural(len(run.cells), 'cell')} gave no result. This "
                f"report uses {used}.",
                "warning",
            ),
        ),
        tables=(
            Table(
                "Cells without a result",
                (
                    Column("cell", name=True),
                    Column("kind"),
                    Column("size", numeric=True),
                    Column("what"),
                    Column("likely cause"),
                    Column("what to do"),
                ),
                rows,
            ),
        ),
    )


def _error(cell: Cell) -> tuple[str, str, str, str, str]:
    if cell.content is None:
        return (
            "missing",
            units.ABSENT,
            "there is no readable cell.json",
            "the run ended before this cell was done, or the file is damaged",
            "run it again with --resume",
        )
    error = cell.content.object("error")
    size = error.integer("size")
    return (
        error.text("kind", "unknown"),
        units.size(size) if size is not None else units.ABSENT,
        error.text("what", "no reason was recorded"),
        error.text("cause", units.ABSENT),
        error.text("action", units.ABSENT),
    )


def _counters(steps: list[Json], name: str) -> int | None:
    return _total(
        node.object("rxe").integer(name)
        for step in steps
        for _, node in step.object("counters").items()
    )


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
