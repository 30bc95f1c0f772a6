# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make setup` installs is what pyproject.toml asks for, each file with its hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGE = Path(__file__).resolve().parents[3] / "tools/rocelab"
PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUN = [*PROJECT["project"]["dependencies"], *EXTRAS["report"], *EXTRAS["lab"]]
BUILD = PROJECT["build-system"]["requires"]
DOCS = EXTRAS.pop("docs")


def locked(name: str) -> dict[str, str]:
    """Versions by name. Every entry must have a hash."""
    text = (PACKAGE / f"locks/{name}.txt").read_text().replace("\\\n", " ")
    versions: dict[str, str] = {}
    for entry in text.splitlines():
        if entry and not entry.startswith("#"):
            match = re.match(r"(\S+)==(\S+) .*--hash=sha256:[0-9a-f]{64}", entry)
            assert match, entry
            versions[canonicalize_name(match[1])] = match[2]
    return versions


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("run", RUN),
        ("build", BUILD),
        ("docs", [*RUN, *DOCS]),
        ("develop", [*RUN, *BUILD, *(name for extra in EXTRAS.values() for name in extra)]),
    ],
    ids=["run", "build", "docs", "develop"],
)
def test_the_lock_has_what_pyproject_asks_for(lock: str, wanted: list[str]) -> None:
    versions = locked(lock)
    for requirement in map(Requirement, wanted):
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"run `make lock`: {requirement} {version}"


@pytest.mark.parametrize("lock", ["run", "build"])
def test_the_locks_agree(lock: str) -> None:
    assert locked(lock).items() <= locked("develop").items()


def test_making_the_site_changes_no_version_of_the_others() -> None:
    docs, develop = locked("docs"), locked("develop")
    assert all(develop.get(name, version) == version for name, version in docs.items())


def test_running_needs_no_tool_of_tests() -> None:
    assert not {"hypothesis", "maturin", "mypy", "pytest", "ruff"} & locked("run").keys()
