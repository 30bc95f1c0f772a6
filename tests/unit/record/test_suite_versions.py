# SPDX-License-Identifier: GPL-2.0-or-later
"""A suite of a version that the parsers were not tested with is named wherever its numbers are."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import html_tree
from rocelab.record.read import Json
from rocelab.record.suite_versions import untested_suites
from rocelab.report import build
from rocelab.terminal import run_tables
from synthetic_run import Synthetic


def cell(tool: str, **mpi: str) -> dict[str, Any]:
    return {"tool": tool, "steps": [{"mpi": mpi}, {"mpi": mpi}]}


@pytest.mark.parametrize(
    ("cells", "named"),
    [
        ([cell("omb", version="7.0")], ()),
        (
            [cell("omb", version="9.1", note="x"), cell("omb", version="9.1", note="x")],
            ("omb 9.1",),
        ),
        (
            [cell("imb", version="2030", note="x"), cell("npb", note="x")],
            ("imb 2030", "npb without a version"),
        ),
        ([cell("\x1b[2J", version="1", note="x"), {"tool": "omb", "steps": [3, {"mpi": 4}]}], ()),
        ([cell("omb", version="1\nnote", note="x")], ("omb 1 note",)),
    ],
)
def test_suites_with_a_note(cells: list[dict[str, Any]], named: tuple[str, ...]) -> None:
    assert untested_suites(map(Json, cells)) == named


def test_the_report_and_the_terminal_warn(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    Synthetic(name="run", tests=("write_lat",), sizes=(64,)).write(folder)
    warning = "rocelab was not tested with omb 9.1."

    def shown() -> tuple[str, str]:
        out = io.StringIO()
        run_tables.show(folder, Console(file=out, width=80, color_system=None))
        page = html_tree.parse(build(folder).read_text(encoding="utf-8"))
        return " ".join(out.getvalue().split()), " ".join(page.text.split())

    assert not any(warning in text for text in shown())
    path = next(folder.glob("cells/*/cell.json"))
    record = json.loads(path.read_text()) | cell("omb", version="9.1", note="not tested")
    path.write_text(json.dumps(record))
    assert all(warning in text for text in shown())
