# SPDX-License-Identifier: GPL-2.0-or-later
"""The rxe driver of a mainline tree, as a git server has it."""

from __future__ import annotations

import re
import subprocess
from datetime import date, timedelta
from pathlib import Path

RXE = "drivers/infiniband/sw/rxe"
# A commit may be that much older than the merge that brought it.
MAX_AGE = timedelta(days=120)


def head(url: str) -> str | None:
    """Return the newest commit, or None if the server cannot be reached."""
    words = ["git", "ls-remote", "--quiet", url, "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.split()[0] if done.returncode == 0 and done.stdout else None


def fetch(url: str, out: Path, since: str) -> str:
    """Put driver and Makefile into `out`; return the version: "7.4.0-rc2-2026-11-29-gCOMMIT".

    With such a version as `since`, commits back to it are fetched, too, without their files.
    """
    words = ["clone", "-q", "--filter=blob:none", "--sparse", "--no-checkout"]
    if since:
        oldest = date.fromisoformat(_parts(since)[0]) - MAX_AGE
        words.append(f"--shallow-since={oldest}")
    else:
        words.append("--depth=1")
    subprocess.run(["git", *words, url, str(out)], check=True)
    git(out, "sparse-checkout", "set", "--no-cone", "/Makefile", f"/{RXE}/")
    git(out, "checkout", "-q")
    makefile = dict(re.findall(r"(?m)^([A-Z]+) = ?(.*)$", (out / "Makefile").read_text()))
    number = ".".join(makefile[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
    when, commit = git(out, "log", "-1", "--format=%cs %H").split()
    return f"{number}{makefile['EXTRAVERSION']}-{when}-g{commit[:12]}"


def changes(tree: Path, since: str) -> list[str]:
    """Return the titles of the commits to rxe after a version."""
    return git(tree, "log", "--format=%s", f"{_parts(since)[1]}..HEAD", "--", RXE).splitlines()


def commit_of(version: str) -> str:
    """Return the first digits of a version's commit."""
    return _parts(version)[1]


def _parts(version: str) -> tuple[str, str]:
    match = re.fullmatch(r".*-(\d{4}-\d{2}-\d{2})-g([0-9a-f]{12})", version)
    assert match, version
    return match[1], match[2]


def git(tree: Path, *words: str) -> str:
    """Run git there and return what it prints."""
    command = ["git", "-C", str(tree), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
