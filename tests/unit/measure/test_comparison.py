# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes are measured once each, and the first patch that goes too far is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rocelab.errors import UsageError
from rocelab.measure import comparison, driver_turns
from rocelab.measure.comparison import Comparison, first_beyond
from rocelab.measure.progress import NullProgress
from rocelab.plans import plan_file, side
from rocelab.plans.side import Side

BASE, ONE, TWO = map(side.parse, ("instrumented", "events", "delay"))


@dataclass(frozen=True)
class Answer:
    accelerator: str
    base: tuple[Path, ...]
    change: tuple[Path, ...]


@dataclass
class Machines:
    """Machines that note which sides they carried."""

    carried: list[str] = field(default_factory=list)
    began: list[str] = field(default_factory=list)
    is_down: bool = False

    def drivers(self, sides: Sequence[Side]) -> list[str]:
        return [one.text for one in sides]

    def begin(self, one: Side) -> None:
        self.began.append(one.text)

    @contextmanager
    def carrying(self, one: Side, driver: str) -> Iterator[Any]:
        assert driver == one.text
        self.carried.append(one.text)
        yield SimpleNamespace(accelerator="icount")

    def down(self) -> None:
        self.is_down = True


@pytest.mark.parametrize(
    ("accelerator", "again"), [("icount", ["delay", "delay"]), ("kvm", ["delay", "instrumented"])]
)
def test_a_base_is_measured_again_only_in_real_time(
    accelerator: str, again: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(100))
    monkeypatch.setattr(driver_turns, "_once", lambda *_: Path(str(next(numbers))))
    machines = Machines()
    with Comparison(
        *(machines, plan_file.load("ab"), BASE),
        judge=lambda base, change: Answer(accelerator, tuple(base), tuple(change)),
        out=tmp_path,
        rounds=2,
        commands=False,
        progress=NullProgress(),
    ) as compared:
        first = compared.answer(ONE)
        assert compared.answer(ONE) is first
        assert sorted(machines.carried) == ["events"] * 2 + ["instrumented"] * 2
        assert machines.began == ["instrumented"]
        machines.carried.clear()
        second = compared.answer(TWO)
        assert sorted(set(machines.carried)) == sorted(set(again))
        assert (second.base == first.base) is (accelerator == "icount")
        assert compared.runs == {
            "base": [path.name for path in second.base],
            "change": [path.name for path in second.change],
        }
        assert compared.folder.parent == tmp_path
        assert not machines.is_down
    assert machines.is_down


@pytest.mark.parametrize(
    ("first_bad", "patch", "asked"), [(1, "1.patch", 4), (3, "3.patch", 4), (0, "", 2), (6, "", 1)]
)
def test_the_first_patch_beyond(first_bad: int, patch: str, asked: int, tmp_path: Path) -> None:
    """Of five; none where the base is bad already, or all of them are good."""
    for number in range(1, 6):
        (tmp_path / f"{number}.patch").write_text("--- a/x\n")
    tried: list[int] = []

    def is_beyond(step: Side) -> bool:
        tried.append(len(step.patches))
        return len(step.patches) >= first_bad

    beyond, name = first_beyond(is_beyond, side.parse(f"patches:{tmp_path}"))
    assert name == patch
    assert len(beyond.patches) == (first_bad if patch else 0 if first_bad == 0 else 5)
    assert len(tried) <= asked
    assert "of 5" in beyond.text


def test_a_side_without_patches_cannot_be_bisected() -> None:
    with pytest.raises(UsageError, match="--bisect needs patches"):
        first_beyond(lambda _: True, BASE)


def test_own_hosts_get_their_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(comparison, "Hosts", lambda *_: made.append("hosts"))
    monkeypatch.setattr(comparison, "Machines", lambda *_: made.append("machines"))
    for own in (True, False):
        plan: Any = SimpleNamespace(
            testbed=SimpleNamespace(provider=SimpleNamespace(own_hosts=own))
        )
        comparison.against(
            *(BASE, plan, (), print),
            judge=lambda *_: Answer("icount", (), ()),
            out=Path(),
            rounds=None,
            commands=False,
            progress=NullProgress(),
        )
    assert made == ["hosts", "machines"]


def test_drivers_are_measured_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has machines, which are down before the next boot; a folder comes with the first."""
    happened: list[str] = []

    class Booted:
        def __init__(self, *_: object) -> None:
            happened.append("up")

        def __enter__(self) -> Booted:
            return self

        def __exit__(self, *_: object) -> None:
            happened.append("down")

        def begin(self, one: Side) -> None:
            if one is TWO:
                raise UsageError("no such machine")

    monkeypatch.setattr(comparison, "Machines", Booted)
    monkeypatch.setattr(driver_turns, "drivers", lambda _plan, sides, _say: list(sides))
    monkeypatch.setattr(driver_turns, "measure_one", lambda *_, name, **__: (Path(name),))
    rest: dict[str, Any] = {"out": tmp_path / "runs", "rounds": 1, "progress": NullProgress()}
    plan = plan_file.load("lines")
    with pytest.raises(UsageError, match="no such machine"):
        comparison.one_by_one(plan, (TWO, ONE), print, **rest)
    assert not (tmp_path / "runs").exists()
    happened.clear()
    folder, runs = comparison.one_by_one(plan, (BASE, ONE), print, **rest)
    assert happened == ["up", "down", "up", "down"]
    assert folder.parent == tmp_path / "runs"
    assert runs == [(BASE, (Path("driver1"),)), (ONE, (Path("driver2"),))]
