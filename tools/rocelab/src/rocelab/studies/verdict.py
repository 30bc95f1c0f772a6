# SPDX-License-Identifier: GPL-2.0-or-later
"""The outcome of a claim's check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The four answers."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    NOT_DECIDED = "not decided"
    """Measured, but with too few repetitions."""
    UNTESTED = "cannot be tested here"


@dataclass(frozen=True)
class Found:
    """A check's verdict and the reason for it."""

    verdict: Verdict
    because: str
    more: int | None = None
    """If not decided: about how many more repetitions would decide; None: too many to make."""


def untested(because: str) -> Found:
    """Return that the run cannot test the claim."""
    return Found(Verdict.UNTESTED, because)
