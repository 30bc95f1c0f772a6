# SPDX-License-Identifier: GPL-2.0-or-later
"""The Markdown pages name only what exists: files, headings, make targets, commands of rocelab."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import click
import pytest

from rocelab.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
TOP = ("docs", "tests", "tools", "kernel", "ebpf", "captures", "tables", ".ci", ".github")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


PAGES = sorted(
    path
    for path in chain(ROOT.glob("*.md"), *((ROOT / top).rglob("*.md") for top in TOP))
    if not {"target", ".pytest_cache"} & set(path.relative_to(ROOT).parts)
)
SOURCES = sorted(
    path
    for pattern in ("*.py", "*.rs", "*.c", "*.h", "*.lua", "*.toml", "*.sh", "Makefile", "run")
    for top in TOP
    for path in (ROOT / top).rglob(pattern)
    if "target" not in path.parts and path.is_file()
)
WIDTH = 120
# a manual page has one line per paragraph
UNWRAPPED = {name(path) for path in (ROOT / "docs/man").iterdir()} | {"ebpf/README.md"}
TOP_PATH = rf"(?<![\w/.-])(?:{'|'.join(map(re.escape, TOP))})/[^\s`,:;)]+"
# placeholders: NAME, <line>, test_x.py, …
PLACEHOLDER = re.compile(r"[<>…{}$*]|(?<![A-Z])(?:LINE|NAME|RULE|SUITE|TOOL)(?![A-Z])")


def code(text: str) -> list[str]:
    """Code blocks, fenced and indented, and code spans: each line or span separately."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4}(.*)$", rest, re.MULTILINE)
    spans = [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", rest)]
    return [*chain.from_iterable(block.splitlines() for block in fenced), *indented, *spans]


def anchors(text: str) -> set[str]:
    """Return the ids that GitHub gives to headings."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }


def test_there_are_pages() -> None:
    assert len(PAGES) > 50
    assert len(SOURCES) > 300


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        if ":" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (
            anchor and anchor not in anchors(there.read_text(encoding="utf-8"))
        ):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_named_files_exist(page: Path) -> None:
    """A path from the top of the checkout, in a code span or block."""
    missing = set()
    for words in code(page.read_text(encoding="utf-8")):
        for named in re.findall(TOP_PATH, words):
            path = named.rstrip(".'\"")
            if PLACEHOLDER.search(path):
                continue
            if not (ROOT / path).exists():
                missing.add(path)
    assert not missing


def test_recipes_name_files_that_exist() -> None:
    """docs/extending.md names the package's files without their folder."""
    package = ROOT / "tools/rocelab/src/rocelab"
    places = {path.name for path in package.iterdir()}
    spans = code((ROOT / "docs/extending.md").read_text(encoding="utf-8"))
    named = {span for span in spans if span.split("/")[0] in places and "/" in span}
    assert len(named) > 20
    assert not {
        span for span in named if not PLACEHOLDER.search(span) and not (package / span).exists()
    }


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist(page: Path) -> None:
    """Return the make targets and rocelab commands that a page tells a reader to type."""
    commands = app.list_commands(click.Context(app))
    targets = {
        target
        for makefile in (
            ROOT / "Makefile",
            *ROOT.glob("*/Makefile"),
            *ROOT.glob("tools/*/Makefile"),
        )
        for target in re.findall(r"^([a-z][\w-]*):", makefile.read_text(), re.MULTILINE)
    }
    unknown = set()
    for words in code(page.read_text(encoding="utf-8")):
        for target in re.findall(r"(?:^|&& |\$ )make ([a-z][a-z-]*)", words):
            if target not in targets:
                unknown.add(f"make {target}")
        for called in re.findall(r"(?:^|&& |\$ |bin/)rocelab ([a-z][a-z-]*)(?= |$)", words):
            if called not in commands:
                unknown.add(f"rocelab {called}")
    assert not unknown


@pytest.mark.parametrize("page", [page for page in PAGES if name(page) not in UNWRAPPED], ids=name)
def test_lines_are_short(page: Path) -> None:
    """At most 120 columns, except tables, long links and program output."""
    text = re.sub(
        r"^```\w*\n.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    long = [
        line
        for line in text.splitlines()
        if len(line) > WIDTH and not line.startswith(("|", "    ")) and "http" not in line
    ]
    assert not long


def test_sources_name_pages_that_exist() -> None:
    missing = {
        f"{name(path)}: {page}"
        for path in SOURCES
        for page in re.findall(r"\bdocs/[\w./-]+\.md\b", path.read_text(encoding="utf-8"))
        if not (ROOT / page).exists()
    }
    assert not missing


def test_the_index_of_shared_test_code_names_each_module_once() -> None:
    folder = ROOT / "tests/lib"
    named = re.findall(r"`(\w+)`[,.]", (folder / "README.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(path.stem for path in folder.glob("*.py"))
