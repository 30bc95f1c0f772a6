# SPDX-License-Identifier: GPL-2.0-or-later
"""How many repetitions a study needs before it runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rocelab.plans.plan import Plan
from rocelab.stats import paired, sample_size
from rocelab.stats.summary import CONFIDENCE
from rocelab.studies.claims import Average, Claim, Compare, Study

NOISES = (0.01, 0.02, 0.03)
"""Standard deviations between repetitions to plan for, as shares of the value."""


@dataclass(frozen=True)
class Need:
    """The claim of a ratio that takes the most repetitions."""

    claim: str
    difference: float
    """The smallest difference that it tells apart, as a share."""
    sizes: int
    """Sizes that it covers in the plan."""

    def repetitions(self, noise: float) -> int | None:
        """Return how many decide it at this noise; None: more than anyone will make."""
        least = paired.fewest(1 - (1 - CONFIDENCE) / self.sizes)
        # both sides of a ratio have noise
        count = sample_size.pairs_needed(math.log1p(self.difference), noise * math.sqrt(2))
        return None if count is None else max(least, count)


def need(study: Study, plan: Plan) -> Need | None:
    """Return the claim of the study that takes the most repetitions in this plan.

    Claims of differences in ns are left out: what they take depends on the latency. On emulated
    nodes no repetitions decide a ratio.
    """
    if not plan.testbed.provider.own_hosts:
        return None
    needs = list(_needs(study, plan))
    return min(needs, key=lambda one: (one.difference, -one.sizes), default=None)


def _needs(study: Study, plan: Plan) -> Iterator[Need]:
    for claim in study.claims:
        sizes = _sizes(claim, plan)
        check = claim.check
        if isinstance(check, Average) and sizes:
            yield Need(claim.name, check.bounds.tolerance.value, 1)
        elif isinstance(check, Compare) and check.how == "ratio" and sizes:
            one = check.over in ("best", "mean")
            yield Need(claim.name, check.bounds.tolerance.value, 1 if one else sizes)


def _sizes(claim: Claim, plan: Plan) -> int:
    """How many sizes of a claim the plan measures on both sides."""
    check = claim.check
    if not isinstance(check, Average | Compare):
        return 0
    common: set[int] | None = None
    for side in (check.first, check.second):
        sizes = {
            size
            for benchmark in plan.benchmarks
            if (benchmark.tool, benchmark.title) == (side.tool, side.test)
            and side.transport in benchmark.transports
            for size in benchmark.sizes
            if isinstance(check, Average) or size in check.sizes
        }
        common = sizes if common is None else common & sizes
    return len(common or ())
