# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the native core over captures and keep its results."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from rocelab import units
from rocelab._core import Analysis as CoreAnalysis
from rocelab._core import Table
from rocelab.capture import interruptible, verdict
from rocelab.capture.capture_conditions import conditions, not_looked_into
from rocelab.capture.select import Select
from rocelab.capture.verdict.connections import all_connections
from rocelab.conditions import lack
from rocelab.errors import RocelabError, UsageError

SCHEMA = "rocelab.analysis/3"

_KEPT_ROWS = 1 << 18
"""Rows after which `read` moves them into Arrow."""

_L1_BYTES = 24
"""Bytes per frame: preamble and start delimiter 8, FCS 4, gap 12 (IEEE 802.3)."""

_FILTERED_FINDINGS = 100_000
"""Findings to keep for a filter by connection to choose from."""

Progress = Callable[[int], None]
"""Called with the number of bytes read so far."""


Withdrawn = tuple[int, int, int, int, int]
"""A message that was refused or given up: its connection, and of its last packet the file, the
number and the time; bytes."""


@dataclass
class Options:
    """How to analyse captures."""

    ports: Sequence[int] = ()
    """Additional UDP ports of RoCE v2, besides 4791."""
    icrc: bool = True
    threads: int = 0
    """Worker threads; 0: one per CPU that this process may use."""
    go_back_n: bool = False
    max_findings: int = 1000
    max_connections: int = 16384
    """Connections to report; the rest are counted. The limit of live connections is separate."""
    select: Select = field(default_factory=Select)
    l1: bool = False
    """Count Ethernet's preamble, FCS and gap into the overhead."""


@dataclass(frozen=True)
class Plan:
    """One reading of the captures: what an earlier one found to be wrong with them."""

    offsets_ns: tuple[int, ...]
    """Added to the times of each file."""
    looks: tuple[tuple[int, int], ...] = ()
    """Segments, by number, of which the captures have each packet so often: one is followed."""
    follow_corrupt: bool = False
    """Follow packets with wrong ICRCs: no other is in the captures."""

    without_icrc: str | None = None
    """No packet has an ICRC: `left_out` of the lengths, or `counted` in them."""

    def next(self, evidence: dict[str, Any]) -> Plan:
        """The reading that `evidence` asks for; the same if nothing was wrong."""
        offsets = list(self.offsets_ns)
        for row in evidence["clocks"]:
            # equal times keep the order of the files: one more puts the response behind
            least = self.offsets_ns[row["behind"]] + row["least_ns"] + 1
            offsets[row["behind"]] = max(offsets[row["behind"]], least)
        absent = self.without_icrc or evidence["without_icrc"]
        # what is absent is not wrong
        all_wrong = evidence["icrcs_all_wrong"] is not None and not absent
        return replace(
            self,
            offsets_ns=tuple(offsets),
            # without the copies, the rest is no evidence
            looks=self.looks or tuple(evidence["looks"]),
            follow_corrupt=self.follow_corrupt or all_wrong,
            without_icrc=absent,
        )


_MAX_PASSES = 4
_MAX_CAPTURES = 65535
"""Of the core."""


@dataclass
class Analysis:
    """A finished analysis.

    The tables implement Arrow's PyCapsule interface (`polars.DataFrame(table)`,
    `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)`) without copying. Their columns
    are listed in docs/formats/analysis.md; times are ns since 1970, sizes are bytes.
    """

    result: dict[str, Any]
    """The object of `--json`."""
    connections: Table
    """One row per connection and direction."""
    findings: Table
    """One row per finding, up to `max_findings`."""
    packets: Table | None = None
    """One row per RoCE packet; set only by `read`."""
    messages: Table | None = None
    """One row per complete message; set only by `read`."""

    plan: Plan = field(default_factory=lambda: Plan(()))
    """How the captures were read at last."""
    interrupted: bool = False
    """A signal ended the reading: the result covers what was read."""
    renumbered: Mapping[int, int] = field(default_factory=dict)
    """Connection numbers of rows that the core gave before it knew their connections, and these."""

    @property
    def chosen(self) -> set[int] | None:
        """Numbers of the connections that a filter chose; None without such a filter."""
        return _chosen(self.result)

    @property
    def errors(self) -> int:
        """Number of findings of severity error, including those beyond the limit."""
        return errors_in(self.result)


def errors_in(result: dict[str, Any]) -> int:
    """Number of findings of severity error in the object of `--json`."""
    counts = result["finding_counts"]
    return sum(row["count"] for row in counts if row["severity"] == "error")


def open_core(
    paths: Sequence[str],
    options: Options,
    plan: Plan,
    *,
    rows: bool,
    early: Sequence[int] = (),
    names: Sequence[str] | None = None,
    excerpts: bool = False,
) -> CoreAnalysis:
    """The core's reading of captures; see `early_numbers` for `early`.

    Raises UsageError if a capture cannot be opened, or there are too many, and MissingError if
    this machine lacks what it takes.
    """
    if len(paths) > _MAX_CAPTURES:
        raise UsageError(
            f"{len(paths)} captures are too many",
            cause=f"one analysis reads at most {_MAX_CAPTURES}",
            action="Analyse a part of them, or merge them first: mergecap -w FILE CAPTURE….",
        )
    select = options.select
    try:
        return CoreAnalysis(
            [os.fspath(path) for path in paths],
            ports=list(options.ports),
            icrc=options.icrc,
            threads=options.threads or len(os.sched_getaffinity(0)),
            packets=rows,
            messages=rows,
            max_findings=_findings_to_keep(options),
            max_connections=options.max_connections,
            go_back_n=options.go_back_n,
            networks=select.networks,
            time_ns=select.time_ns,
            qpns=select.qpns,
            opcodes=bytes(select.opcodes),
            connections=[*select.connections, *early],
            offsets_ns=plan.offsets_ns,
            looks=plan.looks,
            follow_corrupt=plan.follow_corrupt,
            without_icrc=plan.without_icrc,
            excerpts=excerpts,
        )
    except OSError as error:
        raise unreadable(names or paths, error) from error


def unreadable(names: Sequence[str], error: OSError) -> RocelabError:
    """The error for captures of which one cannot be opened."""
    what = f"cannot read {', '.join(names)}"
    return lack(error, what) or UsageError(
        what,
        cause=str(error),
        action="Name pcap or pcapng files, plain or compressed, or - for standard input.",
    )


def _findings_to_keep(options: Options) -> int:
    """How many findings the core must keep: a filter chooses from more than it lists."""
    if options.select.connections or options.select.qpns:
        return max(options.max_findings, _FILTERED_FINDINGS)
    return options.max_findings


def _lists(connection: dict[str, Any], select: Select) -> bool:
    if select.connections and connection["id"] not in select.connections:
        return False
    ends = (connection["a"]["qpn"], connection["b"]["qpn"])
    return not select.qpns or any(qpn in select.qpns for qpn in ends)


def finish_result(
    raw: dict[str, Any], paths: Sequence[str], options: Options, plan: Plan
) -> dict[str, Any]:
    """The `--json` object: file names instead of indexes, and only what the filter selects.

    Raises UsageError if nothing could be read.
    """
    names = [str(path) for path in paths]
    problems = raw["input"]["errors"]
    if problems and raw["input"]["packets"] == 0:
        first = problems[0]
        raise UsageError(
            f"{names[first['file']]} cannot be used",
            cause=first["error"],
            action="Check that it is a complete pcap or pcapng capture; capinfos may say more.",
        )
    _refuse_if_nothing_is_read(raw["input"], names)
    return _judge(raw, names, options, plan)


def _judge(
    raw: dict[str, Any], names: Sequence[str], options: Options, plan: Plan
) -> dict[str, Any]:
    raw["conditions"] = conditions(
        raw,
        names,
        plan.offsets_ns,
        looks=plan.looks,
        followed=plan.follow_corrupt,
        without_icrc=plan.without_icrc,
    )
    raw["clock_offsets_ns"] = list(plan.offsets_ns)
    del raw["evidence"]
    select = options.select
    raw["findings_unfiltered"] = None
    if select.connections or select.qpns:
        _filter(raw, select, options.max_findings)
    located = (
        raw["input"]["errors"],
        raw["icrc"]["bad_packets"],
        raw["congestion"]["pauses"],
        raw["findings"],
    )
    for row in chain.from_iterable((*located, raw["cm"])):
        row["file"] = names[row["file"]]
    others = raw["unlisted"]["others"] if "unlisted" in raw else None
    if others and (idle := others["longest_idle"]):
        idle["file"] = names[idle["file"]]
    for way in chain.from_iterable(row["directions"] for row in all_connections(raw)):
        if idle := way["pace"] and way["pace"]["longest_idle"]:
            idle["file"] = names[idle["file"]]
        for episode in chain.from_iterable(cost["episodes"] for cost in way["costs"]):
            episode["file"] = names[episode["file"]]
    if options.l1:
        _count_l1(raw["overhead"])
    raw["input"]["files"] = list(names)
    return {"schema": SCHEMA, "verdict": verdict.judge(raw), **raw}


def _refuse_if_nothing_is_read(read: dict[str, Any], names: Sequence[str]) -> None:
    """Raise UsageError if every packet has a link type that is not read."""
    rows = [row for row in read["not_looked_into"] if row["kind"] == "link_type"]
    if rows and sum(row["packets"] for row in rows) == read["packets"]:
        raise UsageError(
            f"{', '.join(names)} cannot be used",
            cause="; ".join(not_looked_into(row) for row in rows),
            action="Capture on an Ethernet interface, or on any (-i any).",
        )


def early_numbers(core: CoreAnalysis, select: Select) -> tuple[int, ...]:
    """Numbers that packets of the selected connections have until their connection is known.

    `core` is finished. Without them a filter loses rows that come before the first answer.
    """
    return tuple(early for early, number in core.renumbered.items() if number in select.connections)


def _chosen(result: dict[str, Any]) -> set[int] | None:
    if result["findings_unfiltered"] is None:
        return None
    return {row["id"] for row in all_connections(result)}


def _filter(raw: dict[str, Any], select: Select, limit: int) -> None:
    """Keep only the selected connections, and their findings in lists and counts."""
    raw["connections"] = [row for row in raw["connections"] if _lists(row, select)]
    if "unlisted" in raw:
        _filter_unlisted(raw, select)
    ids = {row["id"] for row in all_connections(raw)}
    findings = [row for row in raw["findings"] if row["connection"] in ids]
    counts: Counter[tuple[str, str]] = Counter()
    for row in findings:
        counts[row["rule"], row["severity"]] += row["count"]
    raw["findings_unfiltered"] = raw["findings_total"]
    raw["findings_total"] = counts.total()
    raw["findings_ambiguous"] = sum(row["count"] for row in findings if row["ambiguous"])
    raw["finding_counts"] = [
        {"rule": rule, "severity": severity, "count": count}
        for (rule, severity), count in sorted(counts.items())
    ]
    raw["findings"] = findings[:limit]
    del raw["icrc"]["bad_packets"][limit:]


def _filter_unlisted(raw: dict[str, Any], select: Select) -> None:
    """Keep of the connections beyond the limit only the selected ones."""
    rows = [row for row in raw["unlisted"]["connections"] if _lists(row, select)]
    del raw["unlisted"]
    if rows:
        # a sum cannot be divided
        raw["unlisted"] = {"connections": rows, "dropped": 0, "dropped_lost_ns": 0, "others": None}


def _count_l1(overhead: dict[str, Any]) -> None:
    """Count the bytes that Ethernet adds to each frame and captures leave out."""
    extra = overhead["preamble_fcs_gap_bytes"]
    overhead["by_header"]["preamble_fcs_gap"] = extra
    overhead["wire_bytes"] += extra
    for row in overhead["by_message_size"]:
        if row["net"] != "infiniband":
            row["wire_bytes"] += _L1_BYTES * row["frames"]
        row["efficiency"] = row["payload_bytes"] / row["wire_bytes"]


def analyze(
    paths: Sequence[str],
    options: Options | None = None,
    *,
    parquet: Path | None = None,
    progress: Progress | None = None,
    names: Sequence[str] | None = None,
    excerpts: bool = False,
    first_results: bool = False,
) -> Analysis:
    """Analyse captures in constant memory; with `parquet`, write all four tables there.

    The result calls the captures by `names`; by default, these are the paths. With `excerpts`,
    `paths` are those of what `rocelab._core.write_excerpt` has written of each capture with the
    same `ports` and `icrc`; packets have no payload then, so `parquet` is not for them.
    With `first_results`, a signal ends the reading of files, too, unless there is `parquet`: the
    result has the condition `interrupted`.
    Raises UsageError if a capture cannot be opened or has no packet, and what
    `parquet_tables.write` raises.
    """
    options = options or Options()
    if parquet is None:
        most = 0

        def drain(core: CoreAnalysis) -> None:
            nonlocal most
            # a second reading begins again
            most = max(most, core.bytes_read)
            if progress:
                progress(most)

        done = _passes(
            paths,
            options,
            drain,
            rows=False,
            names=names,
            excerpts=excerpts,
            first_results=first_results,
        )
        analysis = _analysis(done, names or paths, options)
        if done.interrupted and first_results:
            analysis.result["conditions"].insert(0, _interruption(paths, done.core.bytes_read))
        return analysis
    # the tables are written once, so what is wrong with the captures must be known before
    plan, early = _first_reading(paths, options)
    core = open_core(paths, options, plan, rows=True, early=early)
    # polars takes a second to load
    from rocelab.capture import parquet_tables

    def step() -> bool:
        more = core.step()
        if progress:
            progress(core.bytes_read)
        return more

    def result() -> Analysis:
        done = _Done(core, plan, interrupted=False)
        return _analysis(done, names or paths, options)

    return parquet_tables.write(core, parquet, step=step, result=result)


def _interruption(paths: Sequence[str], read: int) -> dict[str, str]:
    """The condition of captures that were not read to their end."""
    total = sum(Path(path).stat().st_size for path in paths if Path(path).is_file())
    share = f" ({100 * read / total:.0f} %)" if total else ""
    sizes = f"{units.number(read / 1e6)} of {units.number(total / 1e6)} MB" if total else "a part"
    detail = f"interrupted: {sizes}{share} was read, and the rest may hold anything"
    return {"kind": "interrupted", "detail": detail}


@dataclass
class _Done:
    """The last reading of the captures."""

    core: CoreAnalysis
    """Finished."""
    plan: Plan
    interrupted: bool


def _passes(
    paths: Sequence[str],
    options: Options,
    drain: Callable[[CoreAnalysis], None] = lambda _: None,
    *,
    plan: Plan | None = None,
    rows: bool,
    early: Sequence[int] = (),
    names: Sequence[str] | None = None,
    excerpts: bool = False,
    first_results: bool = False,
) -> _Done:
    """Read the captures; once more with clocks corrected, without copies, or with packets
    of wrong ICRCs, where that is needed.

    What cannot be read twice (a pipe) is read once. There a signal ends the reading, and the
    analysis is of what was read. Of a file that would look like the whole: KeyboardInterrupt,
    unless `first_results` are wanted.
    """
    plan = plan or _unread(paths)
    again = _can_read_again(paths)
    for left in reversed(range(_MAX_PASSES)):
        core = open_core(
            paths, options, plan, rows=rows, early=early, names=names, excerpts=excerpts
        )

        def step(core: CoreAnalysis = core) -> bool:
            more = core.step()
            drain(core)
            return more

        stop = None if again and not first_results else core.stop
        interrupted = interruptible.run_steps(step, stop)
        next_plan = plan.next(core.finish())
        if next_plan == plan or not again or not left or interrupted:
            break
        plan = next_plan
    return _Done(core, plan, interrupted)


def _unread(paths: Sequence[str]) -> Plan:
    return Plan((0,) * len(paths))


def _can_read_again(paths: Sequence[str]) -> bool:
    return all(Path(path).is_file() for path in paths)


def _first_reading(paths: Sequence[str], options: Options) -> tuple[Plan, tuple[int, ...]]:
    """How to read captures for their rows, and `early_numbers`; of pipes nothing is known."""
    if not _can_read_again(paths):
        return _unread(paths), ()
    done = _passes(paths, options, rows=False)
    return done.plan, early_numbers(done.core, options.select)


def reading_of(path: str, options: Options) -> Plan:
    """How a capture has to be read. Raises UsageError if it cannot be opened."""
    return _passes([path], options, rows=False).plan


@dataclass(frozen=True)
class Whole:
    """What only a whole capture shows."""

    plan: Plan
    """How it must be read."""
    partial: bool
    """It lacks packets that were sent: it has a sample of them, or lost fragments."""
    verdict: list[dict[str, Any]]
    """What costs time in it, as in `--json`."""


def read_whole(path: str, options: Options) -> Whole:
    """Read a capture for its verdict, and for what decides how its packets are judged.

    Raises UsageError if the capture cannot be opened.
    """
    done = _passes([path], options, rows=False)
    raw = done.core.result(for_verdict=True)
    partial = raw["evidence"]["sampled"] is not None or raw["evidence"]["fragmented"] > 0
    result = _judge(raw, [path], options, done.plan)
    return Whole(done.plan, partial, result["verdict"])


def read(
    *paths: str | os.PathLike[str],
    options: Options | None = None,
) -> Analysis:
    """Analyse captures; also keep packets and messages as Arrow tables in memory.

    A packet takes about 300 bytes; for captures of many GB use `analyze(parquet=…)`.
    Raises UsageError if a capture cannot be opened or has no packet.
    """
    options = options or Options()
    names = [os.fspath(path) for path in paths]

    def keep(core: CoreAnalysis) -> None:
        if core.pending_packets > _KEPT_ROWS:
            core.keep_packets()

    # other rows keep their numbers, whenever their connection is known
    chosen = options.select.connections
    plan, early = _first_reading(names, options) if chosen else (_unread(names), ())
    done = _passes(names, options, keep, plan=plan, rows=True, early=early)
    analysis = _analysis(done, names, options)
    analysis.packets = done.core.packets()
    analysis.messages = done.core.take_messages(analysis.chosen)
    return analysis


def _analysis(done: _Done, paths: Sequence[str], options: Options) -> Analysis:
    result = finish_result(done.core.result(), paths, options, done.plan)
    return with_tables(done.core, result, done.plan, interrupted=done.interrupted)


def with_tables(
    core: CoreAnalysis, result: dict[str, Any], plan: Plan, *, interrupted: bool
) -> Analysis:
    """A finished analysis, from its core and what `finish_result` returned."""
    chosen = _chosen(result)
    return Analysis(
        result,
        connections=core.connections(chosen),
        findings=core.findings(chosen),
        plan=plan,
        interrupted=interrupted,
        renumbered=core.renumbered,
    )
