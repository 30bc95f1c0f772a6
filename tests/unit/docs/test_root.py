# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/root.md lists every program that runs as root on a host, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "tools/rocelab/src/rocelab"


_NAMED = {
    "<installed>": {"sh"},
    "<words>": {"sh"},
    "<asked>": {"devlink"},
    "<command>": {"rxestat", "rxedump", "rxecpu"},
    "<TAP>": {"linktap"},
    "<add>": {"rdma"},
    "<permanent_neighbour>": {"ip"},
    # a server that drops root on its own, or one that setpriv(1) starts without it
    "<become>": {"vsftpd", "setpriv"},
}
"""What stands in variables or comes from functions, and which programs those are."""


def _as_root(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the programs that a module runs with a node's `root`, and where."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func) == "make" and ast.unparse(node.args[0]).endswith(".root"):
            yield "make", path.name
        if not isinstance(node.func, ast.Attribute):
            continue
        who = ast.unparse(node.func.value)
        if not re.search(r"(^|\.)root$", who):
            continue
        where = f"{path.relative_to(ROOT)}:{node.lineno}"
        if node.func.attr == "put":
            yield "sh", where
        elif node.func.attr in ("run", "start"):
            yield _program(node.args[0]), where


def _program(argv: ast.expr) -> str:
    if isinstance(argv, ast.Call) and ast.unparse(argv.func) == "mark":
        argv = argv.args[0]  # env(1), which starts that program
    if isinstance(argv, ast.Call):
        return f"<{ast.unparse(argv.func)}>"
    first = argv.elts[0] if isinstance(argv, ast.Tuple | ast.List) else argv
    if isinstance(first, ast.Starred):
        first = first.value
        if isinstance(first, ast.Tuple):
            first = first.elts[0]
    return str(first.value) if isinstance(first, ast.Constant) else f"<{ast.unparse(first)}>"


def test_what_runs_as_root_is_listed() -> None:
    run_as_root: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for program, where in _as_root(path):
            run_as_root |= dict.fromkeys(_NAMED.get(program, {program}), where)
    page = (ROOT / "docs/root.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = {program for row in rows for program in re.findall(r"`([^`]+)`", row)}
    lacking = {program: where for program, where in run_as_root.items() if program not in listed}
    assert not lacking, "docs/root.md lacks them"
    assert not listed - set(run_as_root), "docs/root.md has too many"
