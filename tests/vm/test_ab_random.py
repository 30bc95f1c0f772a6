# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab` on twenty random patches, on one machine, against a base that is measured once.

ROCELAB_AB_SEED chooses other patches, ROCELAB_AB_FIRST the number of the first of them,
ROCELAB_AB_PATCHES that of the last.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

import injected
from injected import costlier, plan
from rocelab.compare import driver_change
from rocelab.measure import driver_turns
from rocelab.measure.progress import NullProgress
from rocelab.plans import plan_file, side
from rocelab.testbed.artifacts import Driver

SEED = int(os.environ.get("ROCELAB_AB_SEED", "20261124"))
FIRST = int(os.environ.get("ROCELAB_AB_FIRST", "1"))
PATCHES = int(os.environ.get("ROCELAB_AB_PATCHES", "20"))
MIN, MAX = 40, 400


def draw(number: int) -> tuple[tuple[str, str] | None, int]:
    """Return the stage that the patch makes costlier, and by how many instructions; or none."""
    dice = random.Random(f"{SEED}:{number}")
    place = dice.choice([None, *sorted(injected.STAGES)])
    return place, dice.randint(MIN, MAX) if place else 0


@pytest.mark.long
def test_random_patches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is found, located and sized within 1 %; one that does nothing is no difference."""
    file = plan(tmp_path, "rxe-v2")
    chosen = plan_file.load(str(file))
    base = side.parse("instrumented")
    known: tuple[Path, ...] = ()
    wrong = []
    with driver_turns.Machines(chosen, lambda _: None) as machines:
        for number in range(FIRST, PATCHES + 1):
            place, count = draw(number)
            edit = costlier(place or ("tx", "icrc"), count)
            folder = injected.write(tmp_path / f"patch{number}", [edit])
            sides = (base, side.parse(f"patches:{folder}"))
            built = driver_turns.drivers(chosen, sides, lambda _: None)
            try:
                runs = driver_turns.measure(
                    *(chosen, sides, built, machines),
                    out=tmp_path,
                    rounds=2,
                    progress=NullProgress(),
                    known=known,
                )
            finally:
                forget(built[1])
            known = runs.base
            answer = driver_change.judge(runs.base, runs.change)
            good = is_right(answer, place, count)
            if not good:
                wrong.append(number)
            name = ".".join(place) if place else "nothing"
            with capsys.disabled():
                print(f"\n{number:2}: {name} +{count}: {answer.sentence}", end="")
                print("" if good else " WRONG", flush=True)
    assert not wrong


def is_right(answer: driver_change.Answer, place: tuple[str, str] | None, count: int) -> bool:
    """Whether exactly that stage moved, by that, in every kind of packet."""
    stages = {(stage.direction, stage.stage) for stage in answer.moved}
    if place is None:
        return not stages and not answer.counters
    sizes = [abs(stage.difference - count) <= count / 100 for stage in answer.moved]
    return stages == {place} and all(sizes) and not answer.counters


def forget(driver: Driver) -> None:
    """Remove what was built for one patch."""
    shutil.rmtree(driver.module.parent.parent)
