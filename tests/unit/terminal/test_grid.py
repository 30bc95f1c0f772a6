# SPDX-License-Identifier: GPL-2.0-or-later
"""Grids fit the terminal by leaving columns to another grid; no cell is ever cut."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rocelab.terminal import grid


def printed(columns: int, heads: list[str], rows: list[list[str]], keys: int) -> str:
    screen = io.StringIO()
    # as wide as a log: a grid decides by itself
    console = Console(file=screen, width=1000)
    for part in grid.fit(heads, rows, columns, keys=keys):
        console.print(part)
    return screen.getvalue()


HEADS = ["benchmark", "transport", "calls", "network", "rxe"]
ROWS = [
    ["perftest write_lat 1024 B", "tcp", "3,572", "27,933", "0"],
    ["", "rxe-v2", "25,036", "20,260", "30,658"],
    ["mpibench latency", "tcp", "1.64 M", "48,473", "0"],
]


@pytest.mark.parametrize("columns", [120, 62, 60, 40, 30, 20])
def test_nothing_is_wider_than_asked_or_lost(columns: int) -> None:
    text = printed(columns, HEADS, ROWS, 2)
    lines = [line.rstrip() for line in text.splitlines()]
    longest = max(columns, len(ROWS[0][0]))  # a single cell is never cut
    assert max(map(len, lines)) <= longest
    for row in ROWS:
        for cell in row:
            assert cell in text


def test_a_wide_terminal_has_one_grid() -> None:
    lines = printed(80, HEADS, ROWS, 2).splitlines()
    assert len(lines) == 4
    assert lines[0].split() == HEADS


def test_a_narrower_one_has_names_on_lines_of_their_own() -> None:
    lines = [line.rstrip() for line in printed(50, HEADS, ROWS, 2).splitlines()]
    assert lines[0] == "perftest write_lat 1024 B"
    assert lines[1].split() == HEADS[1:]
    assert lines[4] == "mpibench latency"
    ends = {
        line.rindex(row[-1]) + len(row[-1]) for line, row in zip(lines[2:4], ROWS, strict=False)
    }
    assert len(ends) == 1  # columns of all groups end at one place


def test_many_columns_go_to_several_grids() -> None:
    sizes = [f"{2**power} B" for power in range(2, 24)]
    row = ["tx icrc", *(f"{1000 + at:,}" for at in range(len(sizes)))]
    text = printed(60, ["stage", *sizes], [row], 1)
    lines = text.splitlines()
    assert len(lines) > 4
    assert all(line.startswith(("stage", "tx icrc")) for line in lines)
    assert [cell for line in lines[1::2] for cell in line.split()[2:]] == row[1:]


@given(
    st.lists(
        st.tuples(*[st.text("abc,0123456789 .", min_size=1, max_size=30)] * 4),
        min_size=1, max_size=5,
    ),
    st.integers(20, 120),
)  # fmt: skip
def test_any_cells(rows: list[tuple[str, ...]], columns: int) -> None:
    cells = [[cell.replace(" ", "_") for cell in row] for row in rows]
    words = printed(columns, ["a", "b", "c", "d"], cells, 2).split()
    for row in cells:
        for cell in row[1:]:
            assert cell in words


def test_a_paragraph_keeps_its_words() -> None:
    name = "perftest-write_lat.rxe-v2.r01-with-a-very-long-label-that-does-not-fit"
    lines = grid.paragraph(f"{name}: did not run", 40).plain.splitlines()
    assert lines == [f"{name}:", "did not run"]
