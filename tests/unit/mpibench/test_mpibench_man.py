# SPDX-License-Identifier: GPL-2.0-or-later
"""mpibench's manual page agrees with its sources: options, tests, exit statuses."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/man/mpibench.1.md").read_text()
OPTIONS = (ROOT / "tools/mpibench/options.c").read_text()


def test_the_same_options_in_the_same_order() -> None:
    entries = re.findall(r'\{"(\w+)", (required|no)_argument, NULL, \'(\w)\'\}', OPTIONS)
    assert len(entries) == OPTIONS.count("_argument, NULL,")
    there = re.findall(r"^\*\*-(\w)\*\*, \*\*--(\w+)\*\*( \*\w+\*)?$", PAGE, re.MULTILINE)
    assert [(letter, name, bool(argument)) for letter, name, argument in there] == [
        (letter, name, kind == "required") for name, kind, letter in entries
    ]
    # --help has each with its argument's name
    for letter, name, argument in there:
        assert f"  -{letter}, --{name}{argument.replace('*', '')}" in OPTIONS


def test_every_test_is_named() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tools/mpibench").glob("*.c"))
    section = PAGE.split("## TESTS")[1].split("\n## ")[0]
    (listed,) = re.findall(r"^`([\w ]+)`$", section, re.MULTILINE)
    for name in listed.split():
        assert f'"{name}"' in sources
    documented = (ROOT / "docs/formats/mpibench.md").read_text()
    table = documented.split("## Tests")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+` ?)+)\|", table, re.MULTILINE)
    assert set(listed.split()) == {name for row in rows for name in re.findall(r"\w+", row)}


def test_exit_statuses() -> None:
    told = OPTIONS.split("Exit codes: ")[1].split(".")[0]
    section = PAGE.split("## EXIT STATUS")[1].split("\n## ")[0]
    assert re.findall(r"^- (\d): ", section, re.MULTILINE) == re.findall(r"(\d) ", told)
