# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a claim's answer is right, from 100 invented replications of ten repetitions each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from replications import SIZES, Maker, Replication, Truth, false, limits, published, true
from replications import spread_over as constant
from rocelab.studies import library
from rocelab.studies.answers import judge
from rocelab.studies.claims import Adds, Average, Check, Compare, Dips, Falls, Study
from rocelab.studies.verdict import Verdict

pytestmark = pytest.mark.slow
DRAWS = 100
CLAIMS = [(study, claim) for study in map(library.study, library.NAMES) for claim in study.claims]


def cases(kind: type[Check]) -> pytest.MarkDecorator:
    chosen = [(s, c) for s, c in CLAIMS if isinstance(c.check, kind)]
    return pytest.mark.parametrize(
        ("study", "check"),
        [pytest.param(s, c.check, id=f"{s.name}-{c.name}") for s, c in chosen],
    )


def answered(
    check: Check, make: Callable[[Maker], tuple[Replication, ...]], repetitions: int = 10
) -> Counter[Verdict]:
    """The verdicts on that many replications."""
    maker = Maker(random.Random(18), repetitions)
    return Counter(judge(check, *make(maker)).verdict for _ in range(DRAWS))


@cases(Compare)
def test_a_comparison(study: Study, check: Compare) -> None:
    def verdicts(truth: Truth) -> Counter[Verdict]:
        return answered(check, lambda maker: (maker.comparison(check, truth),))

    figure = published(study, check)
    right = true(check.bounds, check.how) if figure is None else constant(figure, figure)
    assert verdicts(right)[Verdict.HOLDS] >= 95
    for wrong in false(check.bounds, check.how):
        assert verdicts(wrong)[Verdict.DOES_NOT_HOLD] >= 95
    for limit in limits(check.bounds, check.how):
        assert verdicts(limit)[Verdict.HOLDS] <= 5


@cases(Average)
def test_an_average_over_tests(study: Study, check: Average) -> None:
    def verdicts(truth: Truth) -> Counter[Verdict]:
        return answered(check, lambda maker: (maker.average(check, truth),))

    assert verdicts(true(check.bounds))[Verdict.HOLDS] >= 95
    for wrong in false(check.bounds, "ratio"):
        assert verdicts(wrong)[Verdict.DOES_NOT_HOLD] >= 95
    for limit in limits(check.bounds, "ratio"):
        assert verdicts(limit)[Verdict.HOLDS] <= 5


@cases(Adds)
def test_what_a_switch_adds(study: Study, check: Adds) -> None:
    def verdicts(truth: Truth) -> Counter[Verdict]:
        return answered(check, lambda maker: maker.switch_cost(check, truth(0, 1)))

    assert verdicts(true(check.bounds, "difference"))[Verdict.HOLDS] >= 95
    for wrong in false(check.bounds, "difference"):
        assert verdicts(wrong)[Verdict.DOES_NOT_HOLD] >= 95
    for limit in limits(check.bounds, "difference"):
        assert verdicts(limit)[Verdict.HOLDS] <= 5


@cases(Falls)
def test_a_curve_that_falls_to_a_plateau(study: Study, check: Falls) -> None:
    """From 0.9 by a tenth per size until it levels out; flat; and rising."""

    def verdicts(value: Callable[[int], float]) -> Counter[Verdict]:
        sizes = [size for size in SIZES if size in check.sizes]
        curve = {size: value(at) for at, size in enumerate(sizes)}
        return answered(check, lambda maker: (maker.curve(check.operand, curve),))

    assert verdicts(lambda at: 0.9 ** min(at, 5))[Verdict.HOLDS] >= 95
    assert verdicts(lambda at: 0.5)[Verdict.DOES_NOT_HOLD] >= 95
    assert verdicts(lambda at: 0.5 + 0.025 * at)[Verdict.DOES_NOT_HOLD] >= 95


@cases(Dips)
def test_a_dip(study: Study, check: Dips) -> None:
    """By 10 %, by nothing, and a rise of 5 %."""
    there, absent = Verdict.HOLDS, Verdict.DOES_NOT_HOLD
    if not check.present:
        there, absent = absent, there

    def verdicts(step: float) -> Counter[Verdict]:
        sizes = [size for size in SIZES if size in check.sizes]
        curve = {sizes[0] // 2: 2e6}
        for size in sizes[:-1]:
            curve[size] = 1.5 * curve[size // 2]
        curve[sizes[-1]] = step * curve[sizes[-1] // 2]
        return answered(check, lambda maker: (maker.curve(check.operand, curve),))

    assert verdicts(0.9)[there] >= 95
    assert verdicts(1.0)[absent] >= 95
    assert verdicts(1.05)[absent] >= 95


@pytest.mark.parametrize("repetitions", [1, 2, 5])
def test_too_few_repetitions_never_decide(repetitions: int) -> None:
    for _, claim in CLAIMS:
        if isinstance(claim.check, Compare) and "frames" not in claim.check.first.metric:
            maker = Maker(random.Random(1), repetitions)
            answer = judge(
                claim.check,
                maker.comparison(claim.check, true(claim.check.bounds, claim.check.how)),
            )
            assert answer.verdict is Verdict.NOT_DECIDED
            assert "more would decide" in answer.because
