# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver out of a git repository: as git stores it, and nothing of the repository runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from requirements import need_program
from rocelab.errors import UsageError
from rocelab.testbed import git_driver

SOURCE = "int rxe;\n"


def git(folder: Path, *words: str) -> None:
    """Run git there, as somebody."""
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one file of the driver."""
    need_program("git")
    folder = tmp_path / "linux"
    rxe = folder / git_driver.FOLDER
    rxe.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (rxe / "rxe_net.c").write_text(SOURCE)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def taken(repository: Path, out: Path, commit: str = "main") -> list[str]:
    """Take the driver, and list the names of its files."""
    git_driver.write(repository, git_driver.resolve(repository, commit), out)
    return sorted(path.name for path in out.iterdir())


def test_as_of_the_commit(repository: Path, tmp_path: Path) -> None:
    """The commit's text, not that of the working tree."""
    (repository / git_driver.FOLDER / "rxe_net.c").write_text("changed since\n")
    assert taken(repository, tmp_path / "out") == ["rxe_net.c"]
    assert (tmp_path / "out/rxe_net.c").read_text() == SOURCE


@pytest.mark.parametrize(
    ("extra", "version"),
    [("= -rc7", "7.3.0-rc7, "), ("=", "7.3.0, "), ("= $(shell reboot)", ""), (None, "")],
)
def test_version(repository: Path, extra: str | None, version: str) -> None:
    """That of the kernel's Makefile, if it is a plain one, and git's name."""
    if extra is not None:
        numbers = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\n"
        (repository / "Makefile").write_text(f"# kernel\n{numbers}EXTRAVERSION {extra}\nNAME = x\n")
        git(repository, "add", ".")
        git(repository, "commit", "-q", "-m", "two")
    tree = git_driver.resolve(repository, "main")
    described = git_driver.version(repository, "main", tree)
    assert described == f"{version}git tree {tree[:12]}"


def test_nothing_of_the_repository_runs(repository: Path, tmp_path: Path) -> None:
    """Its settings name programs; `git archive` would run the filter, as is shown first."""
    ran = tmp_path / "ran"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    for key in ("filter.evil.smudge", "core.fsmonitor", "core.pager", "diff.evil.textconv"):
        git(repository, "config", key, str(script))
    (repository / ".git/info/attributes").write_text("* filter=evil diff=evil\n")
    git(repository, "archive", "-o", str(tmp_path / "x.tar"), "main")
    assert ran.exists()
    ran.unlink()
    taken(repository, tmp_path / "out")
    assert not ran.exists()
    assert (tmp_path / "out/rxe_net.c").read_text() == SOURCE


def test_a_link_is_refused(repository: Path, tmp_path: Path) -> None:
    """A link could lead the build to a file outside."""
    (repository / git_driver.FOLDER / "Makefile").symlink_to("/etc/passwd")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "two")
    with pytest.raises(UsageError, match="holds no driver") as caught:
        taken(repository, tmp_path / "out")
    assert "Makefile" in caught.value.cause


def test_a_file_that_is_no_source_is_refused(repository: Path, tmp_path: Path) -> None:
    """Nobody fills the disk by a commit; the file is not even read."""
    with (repository / git_driver.FOLDER / "rxe_mr.c").open("wb") as file:
        file.truncate(git_driver._MAX_BYTES + 1)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "two")
    with pytest.raises(UsageError, match="holds no driver") as caught:
        taken(repository, tmp_path / "out")
    assert "'rxe_mr.c' is larger than" in caught.value.cause
    assert not (tmp_path / "out/rxe_mr.c").exists()


@pytest.mark.parametrize("commit", ["nonsense", "main~5"])
def test_no_such_commit(repository: Path, tmp_path: Path, commit: str) -> None:
    """The error names folder and commit."""
    with pytest.raises(UsageError, match=commit):
        taken(repository, tmp_path / "out", commit)


def test_objects_that_a_partial_clone_lacks(repository: Path, tmp_path: Path) -> None:
    """Nothing is fetched, so that no program of the repository's settings runs."""
    ran = tmp_path / "ran"
    for file in (repository / ".git/objects").glob("??/*"):
        file.unlink()
    git(repository, "config", "remote.origin.url", f"ext::touch {ran}")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "protocol.ext.allow", "always")
    with pytest.raises(UsageError):
        taken(repository, tmp_path / "out")
    assert not ran.exists()
