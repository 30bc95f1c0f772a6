# SPDX-License-Identifier: GPL-2.0-or-later
"""Only record/ knows the file names of a run folder and the structure of metric names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocelab
from rocelab.record import layout

ROOT = Path(rocelab.__file__).parent
FILES = {
    layout.RUN, layout.CELL, layout.RESULTS, layout.WIRE_CAPTURE, layout.CELLS,
    layout.RUN_SCHEMA, layout.CELL_SCHEMA,
}  # fmt: skip
READERS = {"read_parquet", "scan_parquet"}
ELSEWHERE = {
    "report/export.py": {layout.RESULTS},  # a copy, in a folder of the user's
    "limits.py": {layout.RESULTS},  # by the words of its page
    "capture/parquet_tables.py": READERS,  # its own parts, while it writes
}


def paths_of(path: Path) -> Iterator[str]:
    """Return the file names and readers that a module mentions outside docstrings."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and node.value in FILES - {layout.CELLS}:
            yield str(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            right = node.right
            if isinstance(right, ast.Constant) and right.value in FILES:
                yield str(right.value)
        elif isinstance(node, ast.Attribute) and node.attr in READERS:
            yield node.attr


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(ROOT.rglob("*.py")) if p.parent.name != "record"],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_the_layout_is_known_in_one_place(path: Path) -> None:
    allowed = ELSEWHERE.get(str(path.relative_to(ROOT)), set())
    assert set(paths_of(path)) <= allowed
