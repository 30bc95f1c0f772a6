# SPDX-License-Identifier: GPL-2.0-or-later
"""Flame graphs of a run that recorded stacks: which code the processors ran, and called by what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import altair as alt
import polars as pl

from rocelab import accelerators, units
from rocelab.group_by import group_by
from rocelab.record.folded_stacks import Frames, Stacks
from rocelab.record.read import Run
from rocelab.report import charts, cpu_split, facts, palette
from rocelab.report.charts import Spec
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table
from rocelab.report.palette import Colour

_TITLE = "Flame graphs"
_MEANING = (
    "Each bar is a function, as wide as the work that it and what it called did; it stands on "
    "its caller. At the bottom are context, owner and command. Colours tell owner and context, as "
    "in the CPU split; programs appear as files, not as functions. Recorded by `rxecpu --stacks` "
    "on all nodes, for all sizes and repetitions together; idle time is left out. Recording adds "
    "to what is measured: take times from a run without it. `rxecpu.*.folded` in the cells' "
    "folders has all stacks with the addresses in programs, also those of waits."
)
WIDTH = 900
ROW = 16
_LETTER = 6.2
"""Width of a letter in pixels."""
_NARROWEST = 1.0
"""Pixels of a bar; narrower ones are left out, with what they called."""
_MAX_ROWS = 70
_MAX_LISTED = 10
"""Rows of the table."""
_DARK_TEXT, _LIGHT_TEXT = "#1b2026", "#fffffe"
"""Unlike the page's ink, these stay as they are on a dark page."""
_OTHER = palette.OUTSIDE


@dataclass
class _Frame:
    name: str
    colour: Colour
    total: int = 0
    own: int = 0
    calls: dict[str, _Frame] = field(default_factory=dict)


def section(run: Run) -> Section | None:
    """Return the section, a figure for each benchmark; None without stacks."""
    if not run.stacks:
        return None
    accelerator = next(iter(facts.accelerators(run)), "")
    figures = tuple(
        _figure(benchmark, some, accelerator)
        for benchmark, some in group_by(run.stacks, lambda s: f"{s.tool} {s.test}").items()
    )
    return Section("flames", _TITLE, notes=(Note(_MEANING),), figures=figures, folded=True)


def _figure(benchmark: str, stacks: list[Stacks], accelerator: str) -> Figure:
    counts = accelerators.of(accelerator).counts_instructions
    trees = {one.transport: _tree(one.microseconds) for one in stacks}
    slug = "".join(c if c.isalnum() and c.isascii() else "-" for c in benchmark.lower())
    return Figure(
        f"flames-{slug}",
        f"What the processors ran, {benchmark}",
        (
            "Work in instructions, of all nodes."
            if counts
            else "Time on the processors of all nodes.",
        ),
        tuple(
            Panel(
                f"{transport}, {_amount(tree.total, counts)}",
                _chart(tree, counts),
                f"Flame graph of {benchmark} over {transport}: the table lists its largest "
                "functions.",
                transport=transport,
            )
            for transport, tree in trees.items()
        ),
        _legend(trees.values()),
        tuple(_table(transport, tree, counts) for transport, tree in trees.items()),
        accelerator,
        columns=1,
        folded=True,
        scrolls=True,
    )


def _tree(microseconds: Mapping[Frames, int]) -> _Frame:
    root = _Frame("all", _OTHER)
    for frames, count in sorted(microseconds.items()):
        root.total += count
        at = root
        colour = _colour(frames)
        for depth, name in enumerate(_by_file(frames)):
            if name not in at.calls:
                at.calls[name] = _Frame(name, colour if depth else _OTHER)
            at = at.calls[name]
            at.total += count
        at.own += count
    return root


def _by_file(frames: Frames) -> Iterator[str]:
    """Leave out the addresses in a program's files: each would make a separate bar."""
    before = ""
    for frame in frames:
        file, address, _ = frame.partition("+0x")
        if not address or file != before:
            yield file
        before = file if address else ""


def _key(frames: Frames) -> tuple[str, str]:
    context, owner = (*frames, "", "")[:2]
    return cpu_split.part_of(context.partition(".")[0], owner)


def _colour(frames: Frames) -> Colour:
    return palette.CPU.get(_key(frames), _OTHER)


def _legend(trees: Iterable[_Frame]) -> tuple[Legend, ...]:
    used: set[Colour] = set()
    for tree in trees:
        used |= {
            owner.colour for context in tree.calls.values() for owner in context.calls.values()
        }
    named = [
        Legend(f"{owner}, {context}", colour.light)
        for (owner, context), colour in palette.CPU.items()
        if colour in used
    ]
    return (*named, *((Legend("other", _OTHER.light),) if _OTHER in used else ()))


def _amount(microseconds: int, counts: bool) -> str:
    if counts:
        return f"{units.number(microseconds * 1000)} instructions"
    return units.quantity(microseconds * 1000, "ns")


@dataclass(frozen=True)
class _Bar:
    frame: _Frame
    start: int
    depth: int


def _bars(root: _Frame) -> Iterator[_Bar]:
    least = root.total * _NARROWEST / WIDTH
    left = [_Bar(root, 0, 0)]
    while left:
        bar = left.pop()
        yield bar
        start = bar.start
        for frame in bar.frame.calls.values():
            if frame.total >= least and bar.depth + 1 < _MAX_ROWS:
                left.append(_Bar(frame, start, bar.depth + 1))
            start += frame.total


def _chart(root: _Frame, counts: bool) -> Spec:
    bars = list(_bars(root))
    height = 1 + max(bar.depth for bar in bars)
    scale = WIDTH / max(root.total, 1)
    frame = pl.DataFrame(
        {
            "start": [bar.start * scale for bar in bars],
            "end": [(bar.start + bar.frame.total) * scale for bar in bars],
            "top": [(height - 1 - bar.depth) * ROW for bar in bars],
            "bottom": [(height - bar.depth) * ROW for bar in bars],
            "middle": [(height - bar.depth) * ROW - ROW / 2 for bar in bars],
            "colour": [bar.frame.colour.light for bar in bars],
            "ink": [_ink(bar.frame.colour) for bar in bars],
            "text": [_fitting(bar.frame.name, bar.frame.total * scale) for bar in bars],
            "label": [f"{bar.frame.name}: {_amount(bar.frame.total, counts)}" for bar in bars],
        },
        strict=False,
    )
    drawn = (
        alt.Chart(frame)
        .mark_bar(stroke=palette.GROUND.light, strokeWidth=0.5)
        .encode(
            x=alt.X("start:Q", scale=None, axis=None),
            x2=alt.X2("end:Q"),
            y=alt.Y("top:Q", scale=None, axis=None),
            y2=alt.Y2("bottom:Q"),
            color=alt.Color("colour:N", scale=None),
            description=alt.Description("label:N"),
        )
    )
    names = (
        alt.Chart(frame.filter(pl.col("text") != "").with_columns(pl.col("start") + 3))
        .mark_text(align="left", baseline="middle", fontSize=11)
        .encode(
            x=alt.X("start:Q", scale=None, axis=None),
            y=alt.Y("middle:Q", scale=None, axis=None),
            text=alt.Text("text:N"),
            color=alt.Color("ink:N", scale=None),
        )
    )
    return charts.stack_layers(drawn, names, width=WIDTH, height=height * ROW)


def _ink(colour: Colour) -> str:
    on_light, on_dark = (_is_bright(shade) for shade in (colour.light, colour.dark))
    if on_light and not on_dark:
        return palette.INK.light  # the page's style turns both
    return _DARK_TEXT if on_light else _LIGHT_TEXT


def _is_bright(shade: str) -> bool:
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue > 115


def _fitting(name: str, width: float) -> str:
    letters = int((width - 6) / _LETTER)
    if len(name) <= letters:
        return name
    return f"{name[: letters - 1]}…" if letters > 3 else ""


def _table(transport: str, root: _Frame, counts: bool) -> Table:
    own: dict[tuple[str, str, str], int] = {}
    left: list[tuple[_Frame, Frames]] = [(root, ())]
    while left:
        frame, path = left.pop()
        if frame.own:
            owner, context = _key(path)
            key = (frame.name, owner, context)
            own[key] = own.get(key, 0) + frame.own
        left += [(each, (*path, each.name)) for each in frame.calls.values()]
    largest = sorted(own.items(), key=lambda item: (-item[1], item[0]))[:_MAX_LISTED]
    return Table(
        f"{transport}: self time, the most first",
        (
            Column("function", name=True),
            Column("owner"),
            Column("context"),
            Column("instructions" if counts else "time", numeric=True),
        ),
        tuple(
            (name, owner, context, _amount(amount, counts).removesuffix(" instructions"))
            for (name, owner, context), amount in largest
        ),
        folded=True,
    )
