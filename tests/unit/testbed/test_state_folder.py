# SPDX-License-Identifier: GPL-2.0-or-later
"""Where testbeds are: a folder that no other user can put another in the place of."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest

from rocelab.errors import TestbedError, UsageError
from rocelab.testbed.cache_folder import cache_dir
from rocelab.testbed.qemu import state_folder
from rocelab.testbed.qemu.machine_spec import TestbedSpec
from rocelab.testbed.qemu.state_folder import State
from rocelab.testbed.ssh import inventory
from rocelab.testbed.ssh.connect import connect
from rocelab.testbed.ssh.inventory import Host


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_a_safe_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(mode)
    assert state_folder.base() == tmp_path / "rocelab"


def test_others_may_write_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.raises(TestbedError, match="another user can put another folder"):
        state_folder.base()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_the_folder_is_another_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under sudo, which may keep the variable."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(TestbedError, match="another user can put another folder"):
        state_folder.base()


def test_relative_folders_count_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The XDG specification demands that: what the current folder has is not ours."""
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "there")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cache_dir() == tmp_path / ".cache/rocelab"
    assert inventory.default_path() == tmp_path / ".config/rocelab/hosts.toml"
    with mock.patch.object(os, "getuid", return_value=4294967294):
        # not ours, whoever runs the tests
        with pytest.raises(TestbedError, match="/tmp/rocelab-4294967294"):
            state_folder.base()
        Path("/tmp/rocelab-4294967294").rmdir()
    assert not list(tmp_path.iterdir())


def test_a_path_too_long_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("d" * 100)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    state = State("default")
    with pytest.raises(UsageError, match="too long for a socket") as told:
        state.create(mock.create_autospec(TestbedSpec))
    assert "XDG_RUNTIME_DIR" in told.value.action
    assert not state.path.exists()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("shutil.which", lambda _: "/bin/false")
    with (
        pytest.raises(UsageError, match="TMPDIR"),
        connect([Host("n1", "node1", "eth1")]),
    ):
        pass
    assert [path.name for path in long.iterdir()] == ["rocelab"]
