# SPDX-License-Identifier: GPL-2.0-or-later
"""What one cause costs on the way to one end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rocelab.capture.verdict.line import Certainty

_MANY = 3


@dataclass
class Cost:
    """The costs of one cause on the way to one end."""

    cause: str
    where: str | None
    repairs: dict[str | None, int] = field(default_factory=dict)
    """Time by what ended it."""
    counts: dict[str | None, int] = field(default_factory=dict)
    least_ns: dict[str | None, int] = field(default_factory=dict)
    unsure: int = 0
    messages: int = 0
    ends: set[tuple[str, str]] = field(default_factory=set)
    """Requesters and responders."""
    by_connection: dict[int, int] = field(default_factory=dict)
    ways: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    """The connections and directions, each once."""
    episodes: list[tuple[int, str, int, int]] = field(default_factory=list)

    @property
    def ns(self) -> int:
        return sum(self.repairs.values())

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def certainty(self) -> Certainty:
        if self.unsure == 0:
            return "certain"
        return "likely" if 2 * self.unsure <= self.count or self.count >= _MANY else "possible"
