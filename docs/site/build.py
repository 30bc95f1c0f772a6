#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the site of all pages: build.py FOLDER (`make docs`).

The pages keep their places in the checkout, so that their links hold. rocelab(1) and the pages of
studies, which git does not have, join them. FOLDER/html has the site; it needs no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KINDS = (".md", ".png", ".svg", ".css", ".js")


def stage(pages: Path) -> None:
    """Copy the pages and their pictures, and write the generated ones."""
    named = subprocess.run(
        ("git", "ls-files", "-z", "*.md", "docs/images", "docs/site"),
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, named.split("\0")):
        if name.endswith(KINDS):
            copy = pages / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy)
    subprocess.run(
        (sys.executable, "-m", "rocelab.studies.page", pages / "docs/studies"), check=True
    )
    with (pages / "docs/man" / "rocelab.1.md").open("wb") as file:
        subprocess.run((sys.executable, "-m", "rocelab.cli.manpage"), stdout=file, check=True)


def main() -> int:
    """Stage and build; a link that leads nowhere is an error."""
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    stage(folder / "pages")
    for name in ("mkdocs.yml", "hooks.py"):
        shutil.copyfile(HERE / name, folder / name)
    # the theme would advertise its successor
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    # (--quiet would hide the warnings from --strict)
    done = subprocess.run(
        (sys.executable, "-m", "mkdocs", "build", "--strict"),
        cwd=folder,
        env=environment,
        check=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    sys.stderr.writelines(
        line for line in done.stderr.splitlines(keepends=True) if not line.startswith("INFO")
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
