# SPDX-License-Identifier: GPL-2.0-or-later
"""Print what a change of the driver does in 80 columns, or as JSON (docs/formats/ab.md)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rocelab import accelerators, metrics, units
from rocelab.compare.difference import Difference
from rocelab.compare.driver_change import Answer, Stage, rounds_needed
from rocelab.compare.driver_counters import Moved
from rocelab.compare.kernel_cycles import Cycles
from rocelab.record.driver_check import Check
from rocelab.stats.summary import CONFIDENCE, median
from rocelab.terminal.printable import printable

SCHEMA = "rocelab.ab/1"
WIDTH = 80
_MAX_ROWS = 40
"""Rows of a table; JSON has all."""
_OF = {"min": "cheapest", metrics.TYPICAL: "typical", metrics.MEAN: "mean"}
"""Of which packet a figure is, in a narrow column."""
_SAID = 20
"""Lines of a kernel's complaint."""


def sentence(answer: Answer, checked: Check | None) -> str:
    """The answer in a sentence, with what the check of the drivers found."""
    return f"{answer.sentence}; {checked.sentence}" if checked else answer.sentence


def render(
    answer: Answer,
    base: str,
    change: str,
    beyond: Sequence[Difference],
    checked: Check | None = None,
) -> RenderableType:
    """Table, closing lines and the answer."""
    where = accelerators.of(answer.accelerator).heading
    parts: list[RenderableType] = [
        *_lines(f"base    {base}", f"change  {change}", f"on      {where}")
    ]
    if answer.moved:
        parts += ["", _table(answer.moved[:_MAX_ROWS])]
    if len(answer.moved) > _MAX_ROWS:
        parts += _lines(f"and {len(answer.moved) - _MAX_ROWS} more: --json has all")
    if answer.moved_cycles:
        parts += ["", _cycles(answer.moved_cycles[:_MAX_ROWS])]
    if answer.counters:
        parts += ["", _counters(answer.counters[:_MAX_ROWS])]
    for name, only in zip(("base", "change"), answer.only, strict=True):
        if only:
            parts += _lines(f"Only {name} has {', '.join(only)}.")
    needed = rounds_needed(answer.figures)
    if answer.is_blind:
        parts += _lines(
            f"{answer.rounds} rounds are too few for an interval of {answer.figures} values: "
            f"take --rounds {needed}."
        )
    elif not accelerators.of(answer.accelerator).counts_instructions:
        coverage = units.number(100 * CONFIDENCE)
        parts += _lines(
            f"{answer.rounds} rounds of either side, paired. The intervals of all "
            f"{answer.figures} values together hold with {coverage} %."
        )
    if answer.rounds == 1 and accelerators.of(answer.accelerator).counts_instructions:
        parts += _lines("One round cannot tell a small change from chance: take --rounds 2.")
    if checked:
        parts += _check(checked)
    worse = any(counter.is_worse for counter in answer.counters)
    bad = beyond or worse or (checked and not checked.is_good)
    parts += [
        Text(""),
        *_lines(sentence(answer, checked), style=f"bold {'red' if bad else 'green'}"),
    ]
    return Group(*parts)


def document(answer: Answer, base: str, change: str, runs: dict[str, list[str]]) -> dict[str, Any]:
    """The answer as JSON."""
    return {
        "schema": SCHEMA,
        "base": {"side": base, "runs": runs["base"], "only": list(answer.only[0])},
        "change": {"side": change, "runs": runs["change"], "only": list(answer.only[1])},
        "accelerator": answer.accelerator,
        "rounds": answer.rounds,
        "sentence": answer.sentence,
        "moved": len(answer.moved),
        "stages": [_record(stage) for stage in answer.stages],
        "cycles": [_record(each) for each in answer.cycles],
        "counters": [
            {**asdict(counter), "difference": counter.difference} for counter in answer.counters
        ],
    }


def _record(difference: Difference) -> dict[str, Any]:
    return {**asdict(difference), "percent": difference.percent}


def _table(stages: Sequence[Stage]) -> Table:
    grid = _grid(("packet", "stage", "of"), stages)
    for stage in stages:
        names = (
            printable(_packet(stage)),
            printable(f"{stage.direction} {stage.stage}"),
            _OF[stage.figure],
        )
        grid.add_row(*names, *_figures(stage, stages))
    return grid


def _cycles(counted: Sequence[Cycles]) -> Table:
    grid = _grid(("kernel",), counted)
    for each in counted:
        label = f"cycles/{each.per} ({_step(each)}, {each.node})"
        grid.add_row(printable(label), *_figures(each, counted))
    return grid


def _grid(names: Sequence[str], rows: Sequence[Difference]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column(names[0], overflow="fold")
    for name in names[1:]:
        grid.add_column(name, no_wrap=True)
    for column in ("base", "change", "difference", *["interval"] * _is_timed(rows), "%"):
        grid.add_column(column, justify="right", no_wrap=True)
    return grid


def _is_timed(rows: Sequence[Difference]) -> bool:
    return any(row.interval for row in rows)


def _figures(row: Difference, rows: Sequence[Difference]) -> Iterator[str]:
    yield units.number(row.before)
    yield units.number(row.before + row.difference)
    yield f"{row.difference:+,.1f}"
    if _is_timed(rows):
        between = row.interval
        yield f"{between.low:+,.0f} to {between.high:+,.0f}" if between else ""
    yield "" if row.percent is None else f"{row.percent:+.1f}"


def _counters(counters: Sequence[Moved]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("counter", overflow="fold")
    grid.add_column("benchmark", overflow="fold")
    for column in ("base", "change"):
        grid.add_column(column, justify="right", no_wrap=True)
    for counter in counters:
        place = f"{_step(counter)}, {counter.node}"
        grid.add_row(
            printable(counter.counter),
            printable(place),
            units.number(median(counter.base)),
            units.number(median(counter.change)),
        )
    return grid


def _check(checked: Check) -> Iterator[RenderableType]:
    if checked.differing:
        grid = Table(box=None, pad_edge=False, header_style="dim")
        grid.add_column("test of rdma-core", overflow="fold")
        for column in ("base", "change"):
            grid.add_column(column, no_wrap=True)
        for test, outcomes in list(checked.differing.items())[:_MAX_ROWS]:
            grid.add_row(printable(test), *(one or "not run" for one in outcomes))
        yield Text("")
        yield grid
    for trouble in checked.troubles:
        yield Text("")
        yield from _lines(f"{trouble.side}, {trouble.during}:")
        yield from _lines(*(f"  {line}" for line in trouble.lines[:_SAID]))
    if checked.tests:
        counts = (
            f"{name}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(one.items()))}"
            for name, one in zip(("base", "change"), checked.tests, strict=True)
        )
        yield Text("")
        yield from _lines(f"rdma-core's tests, {'; '.join(counts)}")
        for test, (base, change) in list(checked.unsteady.items())[:_MAX_ROWS]:
            yield from _lines(
                f"equal in a later try: {test}, at first {base or 'not run'} on base and "
                f"{change or 'not run'} on change"
            )
    elif checked.not_run:
        yield from _lines(checked.not_run)


def _packet(stage: Stage) -> str:
    return f"{stage.opcode} ({_step(stage)}, {stage.node})"


def _step(item: Difference | Moved) -> str:
    return f"{item.transport} {item.test} {units.size(item.size)}"


def _lines(*texts: str, style: str = "") -> Iterator[RenderableType]:
    for text in texts:
        yield Text(
            textwrap.fill(printable(text), WIDTH, subsequent_indent="  ", break_on_hyphens=False),
            style=style,
        )
