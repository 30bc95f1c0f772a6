#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""manpages.py FOLDER: write all manual pages as roff, FOLDER/manSECTION/NAME.SECTION.

Those of docs/man, and rocelab(1), which `python -m rocelab.cli.manpage` makes: so this runs with
the Python that has rocelab.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_TITLE = re.compile(r"^# (\S+)\((\d)\)$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
"""A link to another page of the checkout, which a manual page cannot follow."""


def source(markdown: str, version: str) -> str:
    """Return Markdown as go-md2man reads it: with the header of a manual page."""
    text = _LINK.sub(r"\1", _COMMENT.sub("", markdown))
    header = rf'# \1 \2 "" "rocelab {version}" "rocelab"'
    text, titles = _TITLE.subn(header, text, count=1)
    if titles != 1:
        raise ValueError("a manual page begins with `# name(section)`")
    # what apropos(1) indexes: "name - summary"
    return text.replace(" \N{EN DASH} ", " - ", 1)


def roff(markdown: str) -> bytes:
    """Convert a page. Exits if go-md2man is missing or fails."""
    command = ["go-md2man"]
    try:
        return subprocess.run(
            command, input=markdown.encode(), stdout=subprocess.PIPE, check=True
        ).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        sys.exit(
            f"manual pages: {error}\n"
            "  likely cause: go-md2man is not installed\n"
            "  what to do: apt-get install go-md2man"
        )


def generate() -> str:
    """Return rocelab(1) as Markdown."""
    command = [sys.executable, "-m", "rocelab.cli.manpage"]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout


def main(out: Path) -> None:
    """Write every page."""
    project = tomllib.loads((CHECKOUT / "tools/rocelab/pyproject.toml").read_text())["project"]
    pages = {page.name: page.read_text() for page in sorted((CHECKOUT / "docs/man").glob("*.md"))}
    for file, text in {"rocelab.1.md": generate(), **pages}.items():
        name, section = file.removesuffix(".md").rsplit(".", 1)
        target = out / f"man{section}" / f"{name}.{section}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(roff(source(text, project["version"])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
