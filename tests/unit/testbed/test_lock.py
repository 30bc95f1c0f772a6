# SPDX-License-Identifier: GPL-2.0-or-later
"""One lock a testbed: it names its holder, and ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from rocelab.errors import UsageError
from rocelab.testbed import lock
from rocelab.testbed.qemu.state_folder import State
from rocelab.testbed.veth import native

HOLD = """
import sys, pathlib
from rocelab.testbed import lock
with lock.hold(pathlib.Path(sys.argv[1]), "testbed t", shared=sys.argv[2:] == ["shared"]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".t.lock"


def holder(path: Path, *words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_error_names_the_other_process_and_a_kill_frees_the_lock(path: Path) -> None:
    with holder(path) as other:
        try:
            assert lock.holder(path) == other.pid
            lock.discard(path)
            assert path.exists()
            with pytest.raises(UsageError, match=f"in use by process {other.pid}"):
                lock.hold(path, "testbed t").__enter__()
        finally:
            other.kill()
    # what the dead one left is no obstacle
    assert path.exists()
    assert lock.holder(path) is None
    lock.discard(path)
    assert not path.exists()
    with lock.hold(path, "testbed t"):
        assert lock.holder(path) == os.getpid()
    assert not path.exists()


def test_those_who_share_it_keep_others_away(path: Path) -> None:
    with holder(path, "shared") as other:
        try:
            with lock.hold(path, "testbed t", shared=True):
                assert lock.holder(path) == os.getpid()
                with pytest.raises(UsageError, match="in use by process"):
                    lock.hold(path, "testbed t").__enter__()
            # the other still has it
            assert path.exists()
            assert lock.holder(path) == 0
            with pytest.raises(UsageError, match="in use by another process"):
                lock.hold(path, "testbed t").__enter__()
        finally:
            other.communicate("")
    assert not path.exists()
    with holder(path), pytest.raises(UsageError, match="in use by process"):
        lock.hold(path, "testbed t", shared=True).__enter__()


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        lock.hold(path, "testbed t").__enter__()
    assert not (tmp_path / "victim").exists()


def test_looking_at_testbeds_deletes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a supervisor may be that of a testbed that is just starting."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    state = State("starting")
    state.path.mkdir(mode=0o700)
    (state.path / "spec.json").write_text("{}")
    assert [state.name for state in State.all()] == ["starting"]
    assert (state.path / "spec.json").exists()
    assert not state.alive()


def test_the_lock_of_the_machine_is_the_same_for_all_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under sudo, the user's folders are others."""
    first = native._lock()
    try:
        for name in ("HOME", "XDG_RUNTIME_DIR"):
            monkeypatch.setenv(name, str(tmp_path))
        with pytest.raises(UsageError, match="veth pair"):
            native._lock()
    finally:
        os.close(first)
    os.close(native._lock())


def interrupt_at(wanted: int) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that raises KeyboardInterrupt before one of the lock's instructions."""
    passed = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal passed
        if frame.f_code.co_filename != lock.__file__:
            return None
        frame.f_trace_opcodes = True
        passed += event == "opcode"
        if event == "opcode" and passed == wanted:
            raise KeyboardInterrupt
        return trace

    return trace


@pytest.mark.parametrize("shared", [False, True])
def test_an_interruption_at_any_moment_leaves_no_file(path: Path, shared: bool) -> None:
    interrupted = 0
    before = sys.gettrace()
    while interrupted < 1000:
        try:
            sys.settrace(interrupt_at(interrupted + 1))
            with lock.hold(path, "", shared=shared):
                pass
        except KeyboardInterrupt:
            interrupted += 1
        else:
            break
        finally:
            sys.settrace(before)
        assert not path.exists(), interrupted
    assert 50 < interrupted < 1000
