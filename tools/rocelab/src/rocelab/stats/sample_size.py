# SPDX-License-Identifier: GPL-2.0-or-later
"""How many repetitions a decision takes."""

from __future__ import annotations

import math
from statistics import NormalDist

from rocelab.stats import paired
from rocelab.stats.summary import CONFIDENCE

POWER = 0.9
"""How likely the decision is with that many repetitions."""
MAX_PAIRS = 1000
"""More repetitions than anyone will make."""
_EFFICIENCY = 3 / math.pi
"""Of the signed-rank test against the t-test, for normal differences (Hollander et al., 3.11)."""


def pairs_needed(margin: float, stdev: float, confidence: float = CONFIDENCE) -> int | None:
    """Return how many pairs put the whole interval on one side of a limit; None: over `MAX_PAIRS`.

    `margin`: the distance from the estimate to the limit; `stdev`: of the pairs' differences, in
    the same unit. The normal approximation, with the signed-rank test's efficiency.
    """
    least = paired.fewest(confidence)
    if margin <= 0:
        return None
    normal = NormalDist()
    both = normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(POWER)
    ratio = both * stdev / margin
    if ratio > math.sqrt(MAX_PAIRS):
        return None
    count = max(least, math.ceil(ratio**2 / _EFFICIENCY))
    return count if count <= MAX_PAIRS else None
