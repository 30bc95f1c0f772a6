#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""renew.py PATCHES LINE REPOSITORY: write the series of a line back from its git repository.

The repository is that of `make git`: the pristine driver, tagged so, and a commit for each patch.
The newest line's commits become the series: a commit stays in the group of its patch, a new one
joins the group of the one before it. Another line's commits become fixups, and only where the
series does not give the same without fuzz; a fixup keeps its reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

NEWEST = "7.x"
GROUPS = ("fixes", "events", "v1", "test")
HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def main() -> None:
    """Write the series or the fixups."""
    patches, line, repository = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    commits = git(repository, "rev-list", "--reverse", "pristine..HEAD").split()
    if line == NEWEST:
        write_series(patches, repository, commits)
    else:
        write_fixups(patches, patches / "lines" / line, repository, commits)


def git(repository: Path, *words: str) -> str:
    """Run git and return what it prints."""
    return subprocess.run(
        ["git", "-C", str(repository), *words], check=True, capture_output=True, text=True
    ).stdout


def formatted(repository: Path, commit: str, number: int) -> tuple[str, str]:
    """Return name and text of a commit's patch, without what differs from line to line."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--zero-commit", "--no-signature", "--no-stat", "-p", "-N", "--start-number")
        git(repository, "format-patch", "-q", "-1", commit, *options, str(number), "-o", folder)
        (path,) = Path(folder).iterdir()
        text = re.sub(r"(?m)^index [0-9a-f]+\.\.[0-9a-f]+ \d+\n", "", path.read_text())
        return path.name, text.replace("\n\ndiff --git", "\n---\ndiff --git", 1)


def existing(patches: Path) -> dict[str, tuple[str, Path]]:
    """Return group and path of each patch of the series by its name without number."""
    return {
        path.stem[5:]: (group, path)
        for group in GROUPS
        for path in sorted((patches / group).glob("*.patch"))
    }


def write_series(patches: Path, repository: Path, commits: list[str]) -> None:
    """Write the newest line's commits as the series."""
    known, group = existing(patches), GROUPS[0]
    written = []
    for number, commit in enumerate(commits, 1):
        name, text = formatted(repository, commit, number)
        group = known.get(Path(name).stem[5:], (group,))[0]
        written.append((patches / group / name, text))
    for _, path in known.values():
        path.unlink()
    for path, text in written:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def write_fixups(patches: Path, folder: Path, repository: Path, commits: list[str]) -> None:
    """Write what a line has otherwise than the series."""
    series = existing(patches)
    folder.mkdir(exist_ok=True)
    own = {}
    for commit in commits:
        name, text = formatted(repository, commit, 1)
        own[Path(name).stem[5:]] = commit, text
    if unknown := sorted(set(own) - set(series)):
        sys.exit(f"renew: not in the series: {', '.join(unknown)}. Commit it to {NEWEST} first.")
    for name, (_, path) in series.items():
        fixup = folder / f"{name}.fixup"
        if name not in own:
            if not (folder / f"{name}.omitted").exists():
                sys.exit(f"renew: {folder.name} has no {name}. Say why in {name}.omitted.")
            continue
        reason = fixup.read_text().partition("\n--- a/")[0] if fixup.exists() else ""
        fixup.unlink(missing_ok=True)
        commit, text = own[name]
        ours = path.read_text()
        if gives(ours, repository, commit):
            continue
        wanted = headed_like(ours, text)
        candidate = hunks_like(ours, wanted)
        if not gives(candidate, repository, commit):
            candidate = wanted
        fixup.write_text(f"{reason}\n" + difference(ours, candidate, name))


def gives(patch: str, repository: Path, commit: str) -> bool:
    """Whether a patch makes of a commit's parent what the commit is, without fuzz."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for revision, part in ((f"{commit}~1", "before"), (commit, "after")):
            (folder / part).mkdir()
            archive = subprocess.run(
                ["git", "-C", str(repository), "archive", revision], check=True, capture_output=True
            ).stdout
            subprocess.run(["tar", "-x", "-C", folder / part], input=archive, check=True)
        options = ("-p1", "-F0", "-N", "-s", "-f", "--no-backup-if-mismatch", "-r", "-")
        done = subprocess.run(
            ["patch", "-d", folder / "before", *options],
            input=patch, text=True, capture_output=True, check=False,
        )  # fmt: skip
        compared = subprocess.run(
            ["diff", "-rq", folder / "before", folder / "after"], capture_output=True, check=False
        )
        return not done.returncode and not compared.returncode


def headed_like(ours: str, text: str) -> str:
    """Return a patch with the mail header of ours: its number and date are no difference."""
    return ours.partition("\n\n")[0] + "\n\n" + text.partition("\n\n")[2]


def hunks_like(ours: str, text: str) -> str:
    """Return a patch whose hunks begin where ours do, if they change the same lines."""
    known = [hunk for hunk in re.split(r"(?m)^(?=@@ )", ours) if hunk.startswith("@@")]
    found = re.split(r"(?m)^(?=@@ )", text)
    for place, hunk in enumerate(found):
        for other in known if hunk.startswith("@@") else ():
            if key(other) == key(hunk):
                found[place] = other.split("\n", 1)[0] + "\n" + hunk.split("\n", 1)[1]
                known.remove(other)
                break
    return "".join(found)


def key(hunk: str) -> object:
    """Return a hunk's numbers of lines and its changes."""
    numbers = HUNK.match(hunk)
    assert numbers
    return numbers.groups(), [text for text in hunk.split("\n")[1:] if text[:1] in ("+", "-")]


def difference(ours: str, text: str, name: str) -> str:
    """Return the diff from a patch to a line's own."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "a", Path(folder) / "b"
        before.write_text(ours)
        after.write_text(text)
        labels = (f"--label=a/{name}.patch", f"--label=b/{name}.patch")
        return subprocess.run(
            ["diff", "-U1", *labels, before, after], capture_output=True, text=True, check=False
        ).stdout


if __name__ == "__main__":
    main()
