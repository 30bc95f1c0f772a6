# SPDX-License-Identifier: GPL-2.0-or-later
"""Values from one node's rxestat document (docs/formats/rxestat.md) for results.parquet."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rocelab import metrics, stage_table
from rocelab.directory import Directory
from rocelab.errors import CellError
from rocelab.plans.benchmarks.tool import Value
from rocelab.record import histogram, probe_document
from rocelab.record.histogram import Histogram

SCHEMA = "rocelab.rxestat/1"
_WORD = re.compile(r"\w{1,40}", re.ASCII)

Key = tuple[str, str, str]
"""Direction, opcode class, stage."""


@dataclass(frozen=True)
class Stages:
    """What one node's driver did with packets during one step."""

    histograms: Mapping[Key, Histogram]
    """Sizes and network layers merged: a step has one message size and one transport."""
    packets: Mapping[tuple[str, str], tuple[int, int]]
    """(event, opcode class) → (packets, of which switched out and therefore in no histogram)."""
    lost: int
    """Records that the probe could not take."""
    clock_ns: float | None
    """Cost of one clock read; every stage contains one."""
    cycles: int | None = None
    """Of all processors of the machine in kernel mode; None if they could not count."""
    machine: str = ""
    """What nodes share whose documents are parts of one; empty of a node's own document."""
    probe_ns: Mapping[str, float] = field(default_factory=dict)
    """Cost of one run of each of its programs: `tx`, `xmit`, `rx`."""

    @property
    def own_ns(self) -> float:
        """What its programs and the driver's clock reads took, as far as it knows.

        The way from the event to the program is missing.
        """
        runs = {"tx": 0, "rx": 0, "done": 0}
        for (event, _), (count, _) in self.packets.items():
            runs[event] += count
        runs["xmit"] = runs["tx"]
        programs = sum(runs[name] * ns for name, ns in self.probe_ns.items() if name in runs)
        reads = sum(hist.count for hist in self.histograms.values())
        return programs + reads * (self.clock_ns or 0.0)

    @property
    def moved(self) -> int:
        """Packets that were sent or arrived."""
        return sum(
            count for (event, _), (count, _) in self.packets.items() if event in ("tx", "rx")
        )

    def capsules(self, direction: str, opcode_class: str, names: Iterable[str]) -> dict[str, float]:
        """Sums over the stages in ns, per packet, by figure; without those that a stage lacks."""
        hists = [self.histograms.get((direction, opcode_class, stage)) for stage in names]
        stages = [histogram for histogram in hists if histogram is not None]
        if len(stages) < len(hists):
            return {}
        sums = {"mean": sum(stage.mean for stage in stages)}
        typical = [one.mean for stage in stages if (one := stage.typical) is not None]
        if len(typical) == len(stages):
            sums["typical"] = sum(typical)
        return sums

    def on_the_way(self, opcode_class: str) -> float:
        """Mean ns that a packet spends in the stages of sending and of delivering, together."""
        keys = [("tx", opcode_class, stage) for stage in stage_table.TX]
        keys += [("rx", opcode_class, stage) for stage in stage_table.DELIVERING]
        return sum(self._per_packet(key) for key in keys if key in self.histograms)

    def _per_packet(self, key: Key) -> float:
        """Mean ns of a stage over all packets, those included that have no such step."""
        hist = self.histograms[key]
        if key[0] == "rx" and stage_table.is_passed_by_some(key[0], key[2]):
            count, switched = self.packets.get(("done", key[1]), (0, 0))
            return hist.sum / max(hist.count, count - switched)
        return hist.mean

    def values(self) -> Iterator[Value]:
        """Everything as values; kind is the opcode class."""
        for (direction, kind, stage), hist in self.histograms.items():
            for figure, number in _figures(hist):
                metric = metrics.Stage(direction, stage, figure)
                yield Value(metric.name, kind, number, metric.unit)
        for name, (direction, summed) in stage_table.CAPSULES.items():
            for kind in sorted({key[1] for key in self.histograms if key[0] == direction}):
                for figure, total in self.capsules(direction, kind, summed).items():
                    yield Value(metrics.Capsule(name, figure).name, kind, total, "ns")
        for (event, kind), (count, switched) in self.packets.items():
            yield Value(metrics.Packets(event).name, kind, count, "1")
            yield Value(metrics.Packets(event, switched=True).name, kind, switched, "1")
        yield Value(metrics.PROBE_LOST, "counter", self.lost, "1")
        if self.clock_ns is not None:
            yield Value(metrics.PROBE_CLOCK, "calibration", self.clock_ns, "ns")


def _figures(hist: Histogram) -> Iterator[tuple[str, float]]:
    yield from (("count", hist.count), ("sum", hist.sum), ("min", hist.min), ("max", hist.max))
    yield from (("mean", hist.mean), ("p50", hist.quantile(0.5)), ("p99", hist.quantile(0.99)))
    if typical := hist.typical:
        yield from (("typical", typical.mean), ("atypical", typical.atypical))


def file_name(node: str) -> str:
    """Where a node's document lies in a step's folder."""
    return f"rxestat.{node}.json"


def read(step: Directory, node: str) -> Stages:
    """Read a node's document from a step's folder. Raises CellError when it is damaged."""
    return parse(probe_document.read(step, file_name(node)))


def parse_text(text: str | bytes) -> Stages:
    """Parse a document as rxestat writes it. Raises CellError."""
    return parse(probe_document.parse(text, "rxestat's document"))


def parse(document: object) -> Stages:
    """Check and merge a document. Raises CellError."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise CellError(f"rxestat's document does not say {SCHEMA}")
    try:
        by_key: dict[Key, list[Histogram]] = defaultdict(list)
        for row in document["rows"]:
            hist = histogram.from_row(row)
            if hist is not None:
                key = _word(row["dir"]), _word(row["opcode_class"]), _word(row["stage"])
                by_key[key].append(hist)
        packets: dict[tuple[str, str], tuple[int, int]] = {}
        for row in document.get("packets", ()):
            event = _word(row["event"]), _word(row["opcode_class"])
            count, switched = packets.get(event, (0, 0))
            packets[event] = (count + int(row["count"]), switched + int(row["switched"]))
        clock = document.get("clock_ns")
        return Stages(
            {key: histogram.merge(hists) for key, hists in sorted(by_key.items())},
            packets,
            int(document["lost"]),
            float(clock) if isinstance(clock, int | float) else None,
            _cycles(document),
            str(document.get("machine", "")),
            {
                _word(name): float(ns)
                for name, ns in document.get("probe_ns", {}).items()
                if isinstance(ns, int | float)
            },
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CellError(f"rxestat's document has no valid {error!a:.60}") from error


def _cycles(document: Mapping[str, Any]) -> int | None:
    """Another event is none, and an emulated processor's cycles neither."""
    events = document.get("kernel_events")
    if events is None or events["event"] != metrics.CYCLES or document.get("accelerator") == "tcg":
        return None
    count = events["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 1 << 63:
        raise ValueError(count)
    return count


def _word(text: object) -> str:
    """Names from a node become metric names: words only."""
    if not isinstance(text, str) or not _WORD.fullmatch(text):
        raise ValueError(text)
    return text
