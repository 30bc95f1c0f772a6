# SPDX-License-Identifier: GPL-2.0-or-later
"""No module but `rocelab.metrics` spells the name of a metric."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import rocelab
from rocelab import metrics

PACKAGE = Path(rocelab.__file__).parent
FIXED = {
    value
    for name, value in vars(metrics).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, str)
}
FAMILIES = {name.partition(".")[0] for name in FIXED if "." in name} | {
    *("application", "coverage", "decapsulation", "encapsulation", "join", "packets", "stage"),
}
SPELT = re.compile(rf"(?:{'|'.join(sorted(FAMILIES))})\.(?!pcap$)[a-z_*.]*")
NAMED_BY = {"Value", "of", "by_size", "Quantity"}
"""Calls whose first argument is a metric."""


def literals(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of each string and of each part of an f-string, except docstrings."""
    texts = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            yield node.lineno, node.value


def spelt(source: str) -> list[tuple[int, str]]:
    """Line and text of each metric name in a module."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [(line, text) for line, text in literals(nodes) if SPELT.fullmatch(text)]
    for node in nodes:
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            first = node.args[0] if called in NAMED_BY and node.args else None
            if isinstance(first, ast.Constant | ast.JoinedStr):
                names.append((node.lineno, ast.unparse(node)))
        elif isinstance(node, ast.Compare) and "metric" in ast.unparse(node.left):
            names += [
                (node.lineno, ast.unparse(node))
                for right in node.comparators
                if isinstance(right, ast.Constant) and right.value in FIXED
            ]
    return names


def test_nobody_else_spells_one() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "metrics.py"]
    assert len(modules) > 200
    by_module = {str(path.relative_to(PACKAGE)): spelt(path.read_text()) for path in modules}
    assert {path: lines for path, lines in by_module.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        'x = "latency.mean"',
        'x = f"latency.{name}"',
        'y = ("cpu.*",)',
        'Value("bandwidth", kind, 1, "1")',
        'run.by_size("message_rate")',
        'item.metric == "bandwidth"',
    ],
)
def test_the_search_finds_a_name(source: str) -> None:
    assert spelt(source)
