# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab`: what counts as a difference, in instructions and in real time, and the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from rocelab.compare.driver_change import Answer, judge, rounds_needed
from rocelab.errors import CellError
from rocelab.report import ab_figure
from rocelab.terminal import ab_tables, console
from study_results import Line, table, write_run

COUNT = 300


def runs(
    folder: Path,
    stages: dict[str, Sequence[tuple[float, ...]]],
    *,
    accelerator: str = "icount",
    opcode: str = "SEND",
) -> list[Path]:
    """A run for each round; `stages` has (cheapest packet, mean) of each, by round.

    And, where its version recorded them, (typical packet, how many are not).
    """
    return sized(folder, {64: stages}, accelerator=accelerator, opcode=opcode)


def sized(
    folder: Path,
    sizes: dict[int, dict[str, Sequence[tuple[float, ...]]]],
    *,
    accelerator: str = "icount",
    opcode: str = "SEND",
) -> list[Path]:
    """The same for messages of several sizes."""
    rounds = len(next(iter(next(iter(sizes.values())).values())))
    runs = []
    for number in range(rounds):
        lines = []
        for size, stages in sizes.items():
            for name, values in stages.items():
                names = ("min", "mean", "typical", "atypical")
                figures = {"count": COUNT, **dict(zip(names, values[number], strict=False))}
                lines += [
                    Line(
                        *("send_lat", "rxe-v2", f"stage.{name}.{figure}", {size: value}),
                        kind=opcode,
                        unit="1" if figure in ("count", "atypical") else "ns",
                        exact=True,
                    )
                    for figure, value in figures.items()
                ]
        path = folder / str(number)
        runs.append(write_run(path, table(lines, repetitions=1, accelerator=accelerator)))
    return runs


def answer(tmp_path: Path, base: dict, change: dict, **options: str) -> Answer:  # type: ignore[type-arg]
    return judge(
        runs(tmp_path / "base", base, **options), runs(tmp_path / "change", change, **options)
    )


QUIET = {"tx.icrc": [(960, 960)], "tx.alloc": [(901, 905)], "rx.cqe": [(478, 2415)]}


def test_no_difference(tmp_path: Path) -> None:
    """An interrupt in one stage and other wake-ups are none."""
    other = QUIET | {"tx.alloc": [(901, 1010)], "rx.cqe": [(478, 1200)]}
    verdict = answer(tmp_path, QUIET, other)
    assert verdict.moved == verdict.beyond(0) == ()
    assert verdict.sentence == "no difference in any of 3 stages"
    assert ab_figure.draw([], sentence=verdict.sentence, accelerator="icount") == ""


def test_a_side_that_always_wakes(tmp_path: Path) -> None:
    """The cheapest completion may be one that wakes the process: no difference of drivers."""
    verdict = answer(tmp_path, QUIET, QUIET | {"rx.cqe": [(2790, 2800)]})
    assert verdict.moved == ()


def test_an_instruction_is_a_difference(tmp_path: Path) -> None:
    verdict = answer(tmp_path, QUIET, QUIET | {"tx.icrc": [(961, 975)], "rx.cqe": [(468, 9999)]})
    assert [(stage.stage, stage.difference) for stage in verdict.moved] == [
        ("cqe", -10),
        ("icrc", 1),
    ]
    minus = "\N{MINUS SIGN}"
    assert verdict.sentence == (
        f"cqe of received packets {minus}10 instructions ({minus}2.1 %), "
        "icrc of sent packets +1 instructions (+0.1 %); nothing else moved"
    )
    assert len(verdict.beyond(0)) == 1
    assert verdict.beyond(0.2) == ()


def test_a_cost_of_some_packets(tmp_path: Path) -> None:
    """The cheapest packet is as before, the mean is not."""
    verdict = answer(tmp_path, QUIET, QUIET | {"tx.icrc": [(960, 1460)]})
    assert [(stage.stage, stage.difference) for stage in verdict.moved] == [("icrc", 500)]
    assert verdict.moved[0].noise == pytest.approx(40_000 / COUNT)


def test_an_interrupt_is_no_cost(tmp_path: Path) -> None:
    """As seen: it adds 111 % to a mean. So few packets are not judged by it."""
    base = {"rx.exec": [(363, 409.7, 363.1, 1)]}
    verdict = answer(tmp_path / "new", base, {"rx.exec": [(363, 864.4, 363.0, 2)]})
    assert verdict.moved == ()
    # without the number of packets nobody knows
    old = answer(tmp_path / "old", {"rx.exec": [(363, 409.7)]}, {"rx.exec": [(363, 864.4)]})
    assert [(stage.stage, stage.figure) for stage in old.moved] == [("exec", "mean")]


def test_a_cost_of_packets_that_are_not_typical(tmp_path: Path) -> None:
    """One packet in ten takes 5,000 more: neither the cheapest nor a typical one does."""
    base = {"tx.icrc": [(960, 960, 960, 0)]}
    verdict = answer(tmp_path, base, {"tx.icrc": [(960, 1460, 960, 30)]})
    (stage,) = verdict.moved
    assert (stage.figure, stage.difference) == ("mean", 500)


def test_a_cost_of_most_packets(tmp_path: Path) -> None:
    """The cheapest packet is spared, and the mean does not exceed what interrupts add."""
    base = {"tx.icrc": [(960, 970, 960, 1)]}
    verdict = answer(tmp_path / "a", base, {"tx.icrc": [(960, 990, 980, 1)]})
    (stage,) = verdict.moved
    assert (stage.figure, stage.difference) == ("typical", 20)
    assert stage.noise == pytest.approx(9.6)
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(verdict, "a", "b", ()))
    lines = printed.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert any("tx icrc" in line and "typical" in line for line in lines)
    # two runs of one driver are that far apart
    near = answer(tmp_path / "b", base, {"tx.icrc": [(960, 978, 969, 1)]})
    assert near.moved == ()
    # whether the cheaper or the costlier kind is the more frequent one is chance
    kinds = {"tx.icrc": [(960, 970, 960, 120)]}, {"tx.icrc": [(960, 990, 980, 120)]}
    assert answer(tmp_path / "kinds", *kinds).moved == ()
    again = {"tx.icrc": [(960, 970, 960, 1), (960, 975, 970, 1)]}
    after = {"tx.icrc": [(960, 990, 980, 1), (960, 990, 985, 1)]}
    assert answer(tmp_path / "c", again, after).moved == ()


def test_one_round_says_what_it_cannot_tell(tmp_path: Path) -> None:
    """A difference that may be chance comes with what to do; two rounds need no such words."""
    twice = {name: [*values, *values] for name, values in QUIET.items()}
    said = []
    for folder, stages in (("one", QUIET), ("two", twice)):
        verdict = answer(tmp_path / folder, stages, stages)
        with console.out().capture() as printed:
            console.out().print(ab_tables.render(verdict, "a", "b", ()))
        said.append("take --rounds 2" in printed.get())
    assert said == [True, False]


def test_rounds_that_differ_hide_a_mean(tmp_path: Path) -> None:
    base = {"tx.icrc": [(960, 960), (960, 1400)]}
    verdict = answer(tmp_path, base, {"tx.icrc": [(960, 1200), (960, 1300)]})
    assert verdict.moved == ()


def test_rounds_that_differ_hide_the_cheapest_packet(tmp_path: Path) -> None:
    """What one side's rounds differ in one kind of packet is no difference in another kind."""
    steady = {"tx.icrc": [(960, 960)] * 2}
    base = {64: steady | {"tx.net": [(300, 300), (371, 371)]}}
    base[4096] = steady | {"tx.net": [(300, 300)] * 2}
    change = {64: base[64] | {"tx.icrc": [(961, 961)] * 2}}
    change[4096] = base[4096] | {"tx.net": [(371, 371)] * 2}
    verdict = judge(*(sized(tmp_path / name, side) for name, side in (("a", base), ("b", change))))
    assert [(stage.stage, stage.size, stage.difference) for stage in verdict.moved] == [
        ("icrc", 64, 1)
    ]
    noise = {(stage.stage, stage.size): stage.noise for stage in verdict.stages}
    assert noise["net", 4096] == 71
    assert noise["icrc", 64] == 0
    change[4096] = base[4096] | {"tx.net": [(372, 372)] * 2}
    again = judge(sized(tmp_path / "c", base), sized(tmp_path / "d", change))
    assert ("net", 4096, 72) in [(s.stage, s.size, s.difference) for s in again.moved]


def test_real_time_takes_pairs(tmp_path: Path) -> None:
    """A drift that both sides share cancels; too few rounds say nothing."""
    base = {"tx.icrc": [(900, 1000 + 50 * n, 990, 9) for n in range(8)]}
    change = {"tx.icrc": [(880, 1020 + 50 * n + n % 2, 990, 9) for n in range(8)]}
    verdict = answer(tmp_path, base, change, accelerator="kvm")
    (stage,) = verdict.moved
    assert stage.figure == "mean"
    assert stage.interval is not None
    assert 20 <= stage.interval.low <= stage.difference <= stage.interval.high <= 21
    assert stage.unit == "ns"
    few = answer(
        tmp_path / "few",
        {"tx.icrc": base["tx.icrc"][:3]},
        {"tx.icrc": change["tx.icrc"][:3]},
        accelerator="kvm",
    )
    assert few.moved == ()
    assert few.sentence == ("3 rounds cannot tell whether any of 1 stages moved: that takes 6")
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(few, "a", "b", ()))
    assert "3 rounds are too few for an interval of 1 values: take --rounds 6." in printed.get()
    assert rounds_needed(400) == 14


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accelerator", "unit"), [("native", "ns"), ("kvm", "ns"), ("tcg", "emulated ns")]
)
def test_emulated_time_is_not_called_a_time(tmp_path: Path, accelerator: str, unit: str) -> None:
    """As on hosts that are emulated machines. The table has the intervals, and the rounds."""
    base = {"tx.icrc": [(900, 1000 + n) for n in range(8)]}
    change = {"tx.icrc": [(900, 1500 + n) for n in range(8)]}
    verdict = answer(tmp_path, base, change, accelerator=accelerator)
    assert verdict.moved[0].unit == unit
    assert f"+500 {unit} (" in verdict.sentence
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(verdict, "a", "b", ()))
    text = printed.get()
    assert ("no time is real" in text) == (accelerator == "tcg")
    assert "+500 to +500" in text
    assert "8 rounds of either side, paired." in text
    assert max(len(line) for line in text.splitlines()) <= 80


def cycled(
    folder: Path, values: dict[str, Sequence[float]], accelerator: str = "kvm", *, stage: float = 0
) -> list[Path]:
    """A run for each round with kernel cycles, by kind, and one stage."""
    runs = []
    for number in range(len(next(iter(values.values())))):
        lines = [
            Line("send_lat", "rxe-v2", "cycles.kernel", {64: of_rounds[number]}, kind=kind,
                 unit="cycles", exact=True)
            for kind, of_rounds in values.items()
        ]  # fmt: skip
        for figure, value in (("min", 300), ("mean", 300 + stage + number), ("count", COUNT)):
            name = f"stage.tx.icrc.{figure}"
            lines.append(
                Line("send_lat", "rxe-v2", name, {64: value}, kind="SEND", unit="ns", exact=True)
            )
        path = folder / str(number)
        runs.append(write_run(path, table(lines, repetitions=1, accelerator=accelerator)))
    return runs


STEADY = [9_900 + 40 * (number % 6) for number in range(8)]


def test_cycles_are_compared_in_pairs(tmp_path: Path) -> None:
    """Each message, not each packet: a driver that sends fewer packets is not costlier."""
    base = cycled(
        tmp_path / "base",
        {"per_packet": [100.0] * 8, "per_message": STEADY, "counter": [1e9] * 8},
    )
    change = cycled(
        tmp_path / "change",
        {
            "per_packet": [120.0] * 8,
            "per_message": [value - 300 - number % 3 for number, value in enumerate(STEADY)],
            "counter": [1e9] * 8,
        },
    )
    verdict = judge(base, change)
    (cycles,) = verdict.cycles
    assert (cycles.per, cycles.unit, cycles.node) == ("message", "cycles", "n1")
    assert cycles.base == tuple(STEADY)
    assert cycles.interval is not None
    assert -302 <= cycles.interval.low <= cycles.difference <= cycles.interval.high <= -300
    # 95 % of both figures together
    assert cycles.interval.coverage >= 0.975
    minus = "\N{MINUS SIGN}"
    assert verdict.sentence == (
        f"no difference in any of 1 stages; kernel cycles per message {minus}3.0 %"
    )
    assert verdict.beyond(0) == ()
    assert not verdict.is_beyond(0)
    costlier = judge(change, base)
    assert costlier.moved == ()
    assert [each.difference for each in costlier.beyond(2)] == [-cycles.difference]
    assert costlier.is_beyond(2)
    assert not costlier.is_beyond(4)
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(costlier, "a", "b", costlier.beyond(2)))
    text = printed.get()
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "cycles/message" in text
    assert "The intervals of all 2 values together" in " ".join(text.split())
    document = json.loads(
        json.dumps(ab_tables.document(costlier, "a", "b", {"base": [], "change": []}))
    )
    assert document["moved"] == 0
    (written,) = document["cycles"]
    assert written["per"] == "message"
    assert written["moved"] is True
    assert written["percent"] == pytest.approx(3.1, abs=0.05)


def test_cycles_of_one_more_message_come_first(tmp_path: Path) -> None:
    """Where they are known, the start of the programs says nothing."""
    with_start = [value + 1e6 * (number % 3) for number, value in enumerate(STEADY)]
    base = cycled(tmp_path / "base", {"marginal": STEADY, "per_message": with_start})
    more = [value + 300 + number % 3 for number, value in enumerate(STEADY)]
    change = cycled(tmp_path / "change", {"marginal": more, "per_message": with_start})
    (cycles,) = judge(base, change).cycles
    assert (cycles.per, cycles.base, cycles.moved) == ("message", tuple(STEADY), True)


@pytest.mark.slow
def test_cycles_on_a_narrow_terminal(tmp_path: Path) -> None:
    """60 columns: no figure is cut, and the benchmark is named."""
    base = cycled(tmp_path / "base", {"per_message": STEADY})
    other = [value - 300 - number % 3 for number, value in enumerate(STEADY)]
    verdict = judge(base, cycled(tmp_path / "change", {"per_message": other}))
    screen = StringIO()
    Console(width=60, file=screen).print(ab_tables.render(verdict, "a", "b", ()))
    text = screen.getvalue()
    (line,) = (line for line in text.splitlines() if line.startswith("cycles/"))
    assert line.split()[-7:] == ["9,960", "9,659", "-301.0", "-302", "to", "-300", "-3.0"]
    assert "send_lat" in text
    assert "\N{HORIZONTAL ELLIPSIS}" not in text


@pytest.mark.slow
def test_cycles_that_are_as_before(tmp_path: Path) -> None:
    """They are said to be, next to a stage that moved; by packets if messages are not counted."""
    base = cycled(tmp_path / "base", {"per_packet": STEADY})
    other = [value + (-1) ** number for number, value in enumerate(STEADY)]
    change = cycled(tmp_path / "change", {"per_packet": other}, stage=-30)
    verdict = judge(base, change)
    assert [(each.per, each.moved) for each in verdict.cycles] == [("packet", False)]
    minus = "\N{MINUS SIGN}"
    assert verdict.sentence == (
        f"icrc of sent packets {minus}30 ns ({minus}9.9 %); every stage moved; "
        "no difference in kernel cycles"
    )


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", ["icount", "tcg"])
def test_emulated_cycles_are_none(tmp_path: Path, accelerator: str) -> None:
    sides = [cycled(tmp_path / name, {"per_message": STEADY}, accelerator) for name in "ab"]
    verdict = judge(*sides)
    assert verdict.cycles == ()
    assert "cycles" not in verdict.sentence


@pytest.mark.slow
def test_cycles_of_some_rounds_are_not_compared(tmp_path: Path) -> None:
    """A round whose counter never ran has no pair."""
    base = cycled(tmp_path / "base", {"per_message": STEADY})
    change = cycled(tmp_path / "change", {"per_message": STEADY[:7]})
    change += counted(tmp_path / "last", {"packets.tx": [300]}, "SEND", accelerator="kvm")
    assert judge(base, change).cycles == ()


@pytest.mark.slow
def test_few_rounds_say_nothing_of_cycles(tmp_path: Path) -> None:
    """Six pairs give an interval of one figure, not of two."""
    base = cycled(tmp_path / "base", {"per_message": STEADY[:6]})
    change = cycled(tmp_path / "change", {"per_message": [1.0] * 6})
    verdict = judge(base, change)
    assert not verdict.is_beyond(0)
    assert verdict.sentence == "6 rounds cannot tell whether any of 1 stages moved: that takes 7"


def test_cycles_have_an_axis_apart(tmp_path: Path) -> None:
    bars = [
        ab_figure.Moved("tx icrc", 100, 90, 110, "ns"),
        ab_figure.Moved("kernel", -3000, -3100, -2900, "cycles", "message"),
    ]
    drawn = ab_figure.draw(bars, sentence="both moved", accelerator="kvm")
    assert "change, ns for each packet" in drawn
    assert "change, cycles for each message" in drawn


def test_output(tmp_path: Path) -> None:
    """The table fits 80 columns; the document has everything; the figure draws each bar."""
    verdict = answer(tmp_path, QUIET, QUIET | {"tx.icrc": [(1060, 1060)]})
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(verdict, "instrumented", "./mine", verdict.beyond(0)))
    text = printed.get()
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "tx icrc" in text
    assert "+100.0" in text
    assert "64\N{NARROW NO-BREAK SPACE}B" in text
    runs_of = {"base": ["x"], "change": ["y"]}
    document = json.loads(
        json.dumps(ab_tables.document(verdict, "instrumented", "./mine", runs_of))
    )
    assert document["schema"] == "rocelab.ab/1"
    assert document["moved"] == 1
    assert document["stages"][0]["difference"] == 100
    assert len(document["stages"]) == 3
    bar = ab_figure.Moved("tx icrc", 100, 100, 100, "instructions")
    drawn = ab_figure.draw([bar], sentence=verdict.sentence, accelerator="icount")
    assert drawn.startswith("<svg")
    assert "tx icrc" in drawn


def test_packets_of_one_side(tmp_path: Path) -> None:
    base = runs(tmp_path / "base", QUIET)
    with pytest.raises(CellError, match="no stage in common"):
        judge(base, runs(tmp_path / "change", QUIET, opcode="RDMA_WRITE"))


def counted(
    folder: Path, values: dict[str, Sequence[float]], kind: str, accelerator: str = "icount"
) -> list[Path]:
    """A run for each round with these metrics, and one stage."""
    rounds = len(next(iter(values.values())))
    runs = []
    for number in range(rounds):
        lines = [
            Line("send_lat", "rxe-v2", name, {64: of_rounds[number]}, kind=kind, unit="1",
                 exact=True)
            for name, of_rounds in values.items()
        ]  # fmt: skip
        for figure in ("min", "mean", "count"):
            name = f"stage.tx.icrc.{figure}"
            lines.append(
                Line("send_lat", "rxe-v2", name, {64: 300}, kind="SEND", unit="ns", exact=True)
            )
        runs.append(
            write_run(folder / str(number), table(lines, repetitions=1, accelerator=accelerator))
        )
    return runs


@pytest.mark.parametrize(
    ("base", "change", "said"),
    [
        ((0, 0), (3, 4), "the driver counts duplicate_request +4"),
        ((0, 2), (1, 3), ""),
        ((5, 6), (0, 0), "the driver counts duplicate_request \N{MINUS SIGN}6"),
    ],
)
def test_more_trouble(
    tmp_path: Path, base: Sequence[float], change: Sequence[float], said: str
) -> None:
    """A counter moved if every round of one side exceeds every round of the other."""
    name = "driver.duplicate_request"
    sides = (counted(tmp_path / "base", {name: base}, "counter"),
             counted(tmp_path / "change", {name: change}, "counter"))  # fmt: skip
    verdict = judge(*sides)
    assert verdict.sentence == "no difference in any of 1 stages" + (f"; {said}" if said else "")
    assert verdict.is_beyond(100) == (said.endswith("+4"))
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(verdict, "a", "b", ()))
    assert ("rxe-v2 send_lat 64" in printed.get()) == bool(said)


def test_a_lost_ack(tmp_path: Path) -> None:
    """Another number of packets is said where it repeats; it is neither costlier nor cheaper."""
    base = counted(tmp_path / "base", {"packets.tx": (300, 300)}, "ACKNOWLEDGE")
    change = counted(tmp_path / "change", {"packets.tx": (294, 294)}, "ACKNOWLEDGE")
    verdict = judge(base, change)
    assert verdict.sentence.endswith("; the driver counts sent ACKNOWLEDGE \N{MINUS SIGN}6")
    assert not verdict.is_beyond(0)
    varying = counted(tmp_path / "varying", {"packets.tx": (294, 295)}, "ACKNOWLEDGE")
    assert judge(base, varying).counters == ()
