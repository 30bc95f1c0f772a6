# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources that make runs are never searched for: a parent folder may be another user's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from command_line import in_process
from rocelab.errors import MissingError
from rocelab.testbed import artifacts


def _sources(folder: Path) -> Path:
    recipe = folder / "tools/node/build.py"
    recipe.parent.mkdir(parents=True)
    recipe.write_text("")
    return folder


def _installed(monkeypatch: pytest.MonkeyPatch, prefix: Path) -> None:
    """Let the package be in a virtual environment's site-packages."""
    module = prefix / "lib/python3/site-packages/rocelab/testbed/artifacts.py"
    monkeypatch.setattr(artifacts, "__file__", str(module))
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.delenv("ROCELAB_SOURCE", raising=False)
    monkeypatch.delenv("ROCELAB_BUILD", raising=False)


def test_parents_of_the_current_folder_are_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = _sources(tmp_path / "theirs")
    below = theirs / "a/run"
    below.mkdir(parents=True)
    _installed(monkeypatch, tmp_path / "prefix/venv")
    monkeypatch.chdir(below)
    with pytest.raises(MissingError):
        artifacts.source_dir()
    assert theirs not in artifacts.build_dir().parents


def test_parents_of_the_package_are_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sources(tmp_path)
    _installed(monkeypatch, tmp_path / "mine/prefix/venv")
    with pytest.raises(MissingError):
        artifacts.source_dir()


def test_the_installed_source_comes_before_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(monkeypatch, tmp_path / "prefix/venv")
    installed = _sources(tmp_path / "prefix/source")
    monkeypatch.chdir(_sources(tmp_path / "theirs"))
    assert artifacts.source_dir() == installed


def test_a_checkout_is_named_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(monkeypatch, tmp_path / "prefix/venv")
    named = _sources(tmp_path / "named")
    monkeypatch.setenv("ROCELAB_SOURCE", str(named))
    assert artifacts.source_dir() == named
    assert artifacts.build_dir() == named / "build"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROCELAB_SOURCE", "named")
    with pytest.raises(MissingError):
        artifacts.source_dir()


def test_a_checkout_is_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all that builds: the driver of `ab`, the probes of `hosts prepare`, what `up` needs."""
    _installed(monkeypatch, tmp_path / "prefix/venv")
    monkeypatch.setenv("ROCELAB_SOURCE", "")  # so that it is as before afterwards
    monkeypatch.chdir(tmp_path)
    _sources(tmp_path / "named")
    answer = in_process("--source", "named", "up", "--line", "6.1")
    assert answer.returncode == 3
    assert f"make -C {tmp_path / 'named'}" in " ".join(answer.stderr.split())
    assert artifacts.source_dir() == tmp_path / "named"
    assert artifacts.build_dir() == tmp_path / "named/build"


def test_a_folder_without_sources_is_no_checkout(tmp_path: Path) -> None:
    answer = in_process("--source", str(tmp_path), "status")
    assert answer.returncode == 2
    assert "has no sources" in answer.stderr


def test_the_checkout_is_where_the_package_is() -> None:
    assert artifacts.source_dir() == Path(__file__).resolve().parents[3]
