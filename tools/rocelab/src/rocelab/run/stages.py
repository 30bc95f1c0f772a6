# SPDX-License-Identifier: GPL-2.0-or-later
"""Values from one node's rxestat document (docs/formats/rxestat.md) for results.parquet."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocelab.bench.tool import Value
from rocelab.errors import CellError
from rocelab.run import histogram
from rocelab.run.histogram import Histogram

SCHEMA = "rocelab.rxestat/1"
ENCAPSULATION = ("bth", "route", "net", "icrc")
DECAPSULATION = ("parse", "icrc")
SENDING = ("wqe", "alloc", "bth", "route", "net", "copy", "icrc", "xmit")
DELIVERING = ("parse", "icrc", "queue", "exec", "copy", "cqe")
"""Stages before the message is there for its receiver: `reply`, the answer, comes after."""
_OCCASIONAL = ("copy", "cqe")
"""Not every packet carries data, and only a message's last one completes it."""

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

    def mean(self, direction: str, opcode_class: str, stages: Iterable[str]) -> float | None:
        """Sum of the stages' means in ns, per packet; None when a stage saw nothing."""
        total = 0.0
        for stage in stages:
            found = self.histograms.get((direction, opcode_class, stage))
            if found is None:
                return None
            total += found.mean
        return total

    def on_the_way(self, opcode_class: str) -> float:
        """Mean ns that a packet spends in the stages of sending and of delivering, together."""
        keys = [("tx", opcode_class, stage) for stage in SENDING]
        keys += [("rx", opcode_class, stage) for stage in DELIVERING]
        return sum(self._per_packet(key) for key in keys if key in self.histograms)

    def _per_packet(self, key: Key) -> float:
        """Mean ns of a stage over all packets, those included that have no such step."""
        found = self.histograms[key]
        if key[0] == "rx" and key[2] in _OCCASIONAL:
            count, switched = self.packets.get(("done", key[1]), (0, 0))
            return found.sum / max(found.count, count - switched)
        return found.mean

    def values(self) -> Iterator[Value]:
        """Everything as values; kind is the opcode class."""
        for (direction, kind, stage), found in self.histograms.items():
            name = f"stage.{direction}.{stage}"
            yield Value(f"{name}.count", kind, found.count, "1")
            for figure, number in (
                ("sum", found.sum),
                ("min", found.min),
                ("max", found.max),
                ("mean", found.mean),
                ("p50", found.quantile(0.5)),
                ("p99", found.quantile(0.99)),
            ):
                yield Value(f"{name}.{figure}", kind, number, "ns")
        for direction, name, stages in (
            ("tx", "encapsulation", ENCAPSULATION),
            ("rx", "decapsulation", DECAPSULATION),
        ):
            for kind in sorted({key[1] for key in self.histograms if key[0] == direction}):
                mean = self.mean(direction, kind, stages)
                if mean is not None:
                    yield Value(f"{name}.mean", kind, mean, "ns")
        for (event, kind), (count, switched) in self.packets.items():
            yield Value(f"packets.{event}", kind, count, "1")
            yield Value(f"packets.{event}.switched", kind, switched, "1")
        yield Value("probe.lost", "counter", self.lost, "1")
        if self.clock_ns is not None:
            yield Value("probe.clock", "calibration", self.clock_ns, "ns")


def file_name(node: str) -> str:
    """Where a node's document lies in a step's folder."""
    return f"rxestat.{node}.json"


def read(path: Path) -> Stages:
    """Read a node's document. Raises CellError when it is not what it should be."""
    try:
        return parse(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise CellError(f"{path.name} cannot be read: {error!a:.80}") from error


def parse(document: object) -> Stages:
    """Check and merge a document. Raises CellError."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise CellError(f"rxestat's document does not say {SCHEMA}")
    try:
        by_key: dict[Key, list[Histogram]] = defaultdict(list)
        for row in document["rows"]:
            found = histogram.from_row(row)
            if found is not None:
                key = _word(row["dir"]), _word(row["opcode_class"]), _word(row["stage"])
                by_key[key].append(found)
        packets: dict[tuple[str, str], tuple[int, int]] = {}
        for row in document.get("packets", ()):
            event = _word(row["event"]), _word(row["opcode_class"])
            count, switched = packets.get(event, (0, 0))
            packets[event] = (count + int(row["count"]), switched + int(row["switched"]))
        clock = document.get("clock_ns")
        return Stages(
            {key: histogram.merge(found) for key, found in sorted(by_key.items())},
            packets,
            int(document["lost"]),
            float(clock) if isinstance(clock, int | float) else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CellError(f"rxestat's document lacks or garbles {error!a:.60}") from error


def _word(text: object) -> str:
    """Names from a node become metric names: words only."""
    if not isinstance(text, str) or not _WORD.fullmatch(text):
        raise ValueError(text)
    return text
