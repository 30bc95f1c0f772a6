# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether two drivers are right: what rdma-core's tests and hostile frames found, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Which = Literal["base", "change"]
TESTS, FRAMES = "rdma-core's tests", "hostile frames"
_NAMED = 3
"""Tests that the sentence names; the table and JSON have all."""


@dataclass(frozen=True)
class Trouble:
    """A complaint of a kernel, a node that died, or a driver that cannot be unloaded."""

    side: Which
    during: str
    """TESTS or FRAMES."""
    lines: tuple[str, ...]
    """What was said, at least one line."""


@dataclass(frozen=True)
class Check:
    """What was found on both sides."""

    tests: tuple[Mapping[str, int], Mapping[str, int]] | None
    """Number of tests by outcome in their last try, of base and change; None if none were run."""
    not_run: str
    """Why none were run, and what to do."""
    differing: Mapping[str, tuple[str | None, str | None]]
    """Tests whose outcomes differ in every try, with those of the last one on base and change."""
    unsteady: Mapping[str, tuple[str | None, str | None]]
    """Tests that differed at first and agreed in a later try, with the outcomes of the first."""
    frames: tuple[int, int]
    """Hostile frames sent to base and to change; 0 if the node did not survive them."""
    troubles: tuple[Trouble, ...]

    @property
    def is_good(self) -> bool:
        """Whether nothing was found."""
        return not self.differing and not self.troubles

    @property
    def sentence(self) -> str:
        """What was found."""
        return "; ".join((self._of_tests(), self._of_frames()))

    def _of_tests(self) -> str:
        parts = [f"{TESTS}: {trouble}" for trouble in self._troubles(TESTS)]
        if self.differing:
            names = [
                f"{short(test)} ({base or 'not run'} on base, {change or 'not run'} on change)"
                for test, (base, change) in self.differing.items()
            ]
            rest = len(names) - _NAMED
            more = [f"{rest} more"] if rest > 0 else []
            parts.append(f"{TESTS} differ in {', '.join([*names[:_NAMED], *more])}")
        if not parts:
            return f"{TESTS} {'not run' if self.tests is None else 'equal'}"
        return "; ".join(parts)

    def _of_frames(self) -> str:
        troubles = "; ".join(self._troubles(FRAMES)) or "no complaint"
        # a node that died has no count
        sent = f"{_power(min(self.frames))} " if all(self.frames) else ""
        return f"{sent}{FRAMES}: {troubles}"

    def _troubles(self, during: str) -> Iterator[str]:
        for trouble in self.troubles:
            if trouble.during == during:
                yield f"{trouble.side}: {trouble.lines[0]}"

    def document(self) -> dict[str, Any]:
        """Return it for JSON (docs/formats/ab.md)."""
        outcomes = self.tests or ({}, {})
        return {
            "good": self.is_good,
            "tests": None
            if self.tests is None
            else {"base": dict(outcomes[0]), "change": dict(outcomes[1])},
            "not_run": self.not_run,
            "differing": _rows(self.differing),
            "unsteady": _rows(self.unsteady),
            "frames": {"base": self.frames[0], "change": self.frames[1]},
            "troubles": [
                {"side": one.side, "during": one.during, "lines": list(one.lines)}
                for one in self.troubles
            ],
        }


def short(test: str) -> str:
    """Return a test's own name, without those of module and class."""
    return test.rpartition(".")[2]


def _rows(tests: Mapping[str, tuple[str | None, str | None]]) -> list[dict[str, str | None]]:
    return [
        {"test": test, "base": base, "change": change} for test, (base, change) in tests.items()
    ]


def _power(count: int) -> str:
    power = len(str(count)) - 1
    return f"10^{power}" if count == 10**power and power > 3 else f"{count:,}"
