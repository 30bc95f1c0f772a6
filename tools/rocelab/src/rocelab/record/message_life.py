# SPDX-License-Identifier: GPL-2.0-or-later
"""One message's life through both drivers, and its values in results.parquet.

`docs/formats/join.md` defines the spans, `docs/formats/results.md` the metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rocelab import metrics, stage_table
from rocelab.plans.benchmarks.tool import Value
from rocelab.record.results_table import WIRE

PLACES = {
    "tx": stage_table.IN_TIME["tx"],
    "rx": stage_table.IN_TIME["rx"],
    "answer_tx": stage_table.IN_TIME["tx"],
    "answer_rx": stage_table.IN_TIME["rx"],
}
"""Where a request and its answer pass a driver, and the stages there."""
AT_REQUESTER = frozenset({"tx", "answer_rx"})
"""The places in the requester's driver; the others are in the responder's."""
SPANS = (
    "requester", "wire", "responder", "requester_side", "responder_side", "between", "there",
    "back", "period", "on_the_way",
)  # fmt: skip
"""Spans of time, each within one clock."""
_NEEDED = frozenset({"requester", "wire", "responder", "requester_side", "responder_side"})
_LONGEST = 1e18
"""ns; what says more, or less than its negative, was not measured."""
_KIND = "median_message"


@dataclass(frozen=True)
class MessageLife:
    """A message's times in ns; what was not measured is absent."""

    requester: str
    responder: str
    spans: Mapping[str, float]
    """By the names of `SPANS`."""
    stages: Mapping[str, Mapping[str, float]]
    """By the names of `PLACES`, then by stage."""
    chosen_from: int
    """Number of messages that it was chosen from."""

    def length(self, place: str) -> float:
        """All of a packet's time at one end."""
        return sum(self.stages[place].values())

    def values(self) -> Iterator[tuple[str, Value]]:
        """(node, value) of each part, as `from_values` reads them."""
        yield WIRE, Value(metrics.LIFE_OF, _KIND, self.chosen_from, "1")
        for name, ns in self.spans.items():
            yield self.requester, Value(metrics.LifeSpan(name).name, _KIND, ns, "ns")
        for place, stages in self.stages.items():
            node = self.requester if place in AT_REQUESTER else self.responder
            for stage, ns in stages.items():
                yield node, Value(metrics.LifeStage(place, stage).name, _KIND, ns, "ns")


def is_part(metric: str) -> bool:
    """Say whether a metric belongs to a life."""
    families = (metrics.LifeStage, metrics.LifeSpan)
    return metric == metrics.LIFE_OF or any(family.parse(metric) for family in families)


def from_values(parts: Iterable[tuple[str, str, float]]) -> MessageLife | None:
    """Build a life from (node, metric, value); None if a part lacks or cannot be a time."""
    spans: dict[str, float] = {}
    stages: dict[str, dict[str, float]] = {place: {} for place in PLACES}
    nodes: dict[str, str] = {}
    chosen_from = 0
    for node, metric, value in parts:
        if metric == metrics.LIFE_OF:
            chosen_from = int(value)
        elif (span := metrics.LifeSpan.parse(metric)) and span.span in SPANS:
            spans[span.span] = value
        elif (part := metrics.LifeStage.parse(metric)) and part.stage in PLACES[part.place]:
            stages[part.place][part.stage] = value
            nodes[part.place] = node
    if not spans.keys() >= _NEEDED or set(nodes) != set(PLACES) or spans["requester"] <= 0:
        return None
    times = [*spans.values(), *(ns for known in stages.values() for ns in known.values())]
    if max(map(abs, times)) > _LONGEST:
        return None
    return MessageLife(nodes["tx"], nodes["rx"], spans, stages, chosen_from)
