# SPDX-License-Identifier: GPL-2.0-or-later
"""The site of the pages: its menu, and how it adapts pages that are written for GitHub."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from script_module import load

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "docs/site"
NAV = set(re.findall(r": (\S+\.md)$", (SITE / "mkdocs.yml").read_text(), re.MULTILINE))
hooks = load("docs/site/hooks.py")


def test_the_menu_has_every_how_to_and_nothing_else_than_pages() -> None:
    named = subprocess.run(
        ("git", "ls-files", "*.md"), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    generated = ("docs/studies/", "docs/man/rocelab.")
    assert {name for name in NAV if not name.startswith(generated)} <= set(named)
    assert {name for name in named if name.startswith(("docs/howto/", "docs/man/"))} <= NAV


@pytest.mark.parametrize(
    ("written", "site"),
    [
        ("[a](b.md#c)", "[a](b.md#c)"),
        ("[a](../kernel/)", "[a](../kernel/README.md)"),
        ("[`a.pcap`](../captures/a.pcap)", "`a.pcap`"),
        ("[a](https://example.org/b)", "[a](https://example.org/b)"),
        ("[a](missing.md)", "[a](missing.md)"),
        ("![a](images/a.png)", "![a](images/a.png)"),
    ],
)
def test_links_lead_to_pages_of_the_site(written: str, site: str) -> None:
    known = {"b.md", "kernel/README.md"}
    assert hooks.linked(written, "tools/x.md", known.__contains__) == site


def test_a_search_prefers_what_people_do() -> None:
    ranked = (
        "docs/questions.md",
        "docs/howto/exec.md",
        "docs/limitations.md",
        "tests/lib/README.md",
    )
    boosts = [hooks.boost(name) for name in ranked]
    assert boosts == sorted(set(boosts), reverse=True)


def test_what_belongs_to_an_item_is_indented_by_four() -> None:
    after = "\n2. two\n\nend\n\n```\n- code\n  b\n```"
    written = "1. one\n   more\n\n   ```sh\n   - a\n   ```\n" + after
    site = "1. one\n    more\n\n    ```sh\n    - a\n    ```\n" + after
    assert hooks.indented_lists(written) == site


def test_nothing_comes_from_a_network() -> None:
    class Page:
        url = "docs/howto/a.html"

    head = f'<script src="{hooks._SHIM}"></script>'
    assert hooks.on_post_page(head, page=Page) == '<script src="../site/worker.js"></script>'
    assert "font: false" in (SITE / "mkdocs.yml").read_text()
