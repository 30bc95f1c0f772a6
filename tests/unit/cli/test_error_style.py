# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors are written one way: what failed and its cause are clauses, what to do is a sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocelab

PACKAGE = Path(rocelab.__file__).parent
NAMES = ("Open MPI", "QEMU", "SHA-256", "Slurm", "Wireshark")
"""What a clause may begin with in capitals."""


def edges(node: ast.expr) -> tuple[str, str]:
    """The first and the last literal text of a string; empty where a field stands."""
    values = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [
        value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
        for value in values
    ]
    return texts[0], texts[-1]


def wrong(source: str) -> Iterator[tuple[int, str]]:
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        if name == "add_argument":
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if isinstance(action := given.get("action"), ast.Constant | ast.JoinedStr):
            first, last = edges(action)
            if first[:1].islower() or (ast.unparse(action) != "''" and last[-1:] != "."):
                yield call.lineno, ast.unparse(action)
        clauses = [given.get("cause"), *(call.args[:1] if name.endswith("Error") else ())]
        for clause in clauses:
            if isinstance(clause, ast.Constant | ast.JoinedStr):
                first, last = edges(clause)
                proper = first.startswith(NAMES) or first[:2].isupper()
                if (first[:1].isupper() and not proper) or last.endswith("."):
                    yield clause.lineno, ast.unparse(clause)


def test_every_error() -> None:
    faults = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := list(wrong(path.read_text())))
    }
    assert faults == {}


@pytest.mark.parametrize(
    "call",
    [
        'UsageError("The plan is bad")',
        'UsageError("the plan is bad.")',
        'UsageError("x", cause="It is old")',
        'UsageError("x", action="look again")',
        'UsageError("x", action=f"Look at {path}")',
    ],
)
def test_the_search_finds_another_style(call: str) -> None:
    assert list(wrong(call))
