# SPDX-License-Identifier: GPL-2.0-or-later
"""The state folder of a testbed: keys, sockets, consoles and the supervisor's lock.

Its mode is 0700, it is outside any repository, and it exists only while the testbed is up. The
supervisor holds a lock in it, so that a folder without a live supervisor is known to be stale.
Another lock is next to the folder: whoever makes the testbed, measures on it or takes it down
holds that one (rocelab.testbed.lock).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import stat
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from rocelab import json_text
from rocelab.conditions import check_socket, system_error, xdg_folder
from rocelab.directory import read_named
from rocelab.errors import TestbedError, UsageError
from rocelab.testbed import lock
from rocelab.testbed.qemu.last_words import last_words
from rocelab.testbed.qemu.machine_spec import TestbedSpec

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_MAX_JSON = 1 << 20
_LONGEST_SOCKET = "fault-01234567/to_server-into.sock"
"""Of a faulty link, whose sockets have the longest names in the folder of a testbed."""


def base() -> Path:
    """Return the folder for all testbeds of this user; create it if it is missing."""
    runtime = xdg_folder("XDG_RUNTIME_DIR")
    # checked below: in /tmp another user may have created it first
    path = runtime / "rocelab" if runtime else Path(f"/tmp/rocelab-{os.getuid()}")  # noqa: S108
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        own, parent = path.lstat(), path.parent.stat()
    except OSError as error:
        raise system_error(
            error,
            f"cannot make the folder of your testbeds, {path}",
            action="Set XDG_RUNTIME_DIR to a folder that only you can read and write.",
        ) from error
    if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.getuid() or own.st_mode & 0o077:
        raise TestbedError(
            f"{path} is not a private folder of yours",
            cause="another user created it, or its permissions were changed",
            action="Set XDG_RUNTIME_DIR to a folder that only you can read.",
        )
    if _others_can_rename(parent):
        raise TestbedError(
            f"another user can put another folder in the place of {path}",
            cause=f"{path.parent} is another user's, or all may write there",
            action="Set XDG_RUNTIME_DIR to a folder of yours with mode 0700.",
        )
    return path


def _others_can_rename(folder: os.stat_result) -> bool:
    """Say whether another user than root can rename what is in a folder and ours."""
    if folder.st_uid not in (0, os.getuid()):
        return True
    by_group = folder.st_mode & stat.S_IWGRP and folder.st_gid != os.getgid()
    by_all = folder.st_mode & stat.S_IWOTH
    return bool(by_group or by_all) and not folder.st_mode & stat.S_ISVTX


class State:
    """The state folder of one testbed."""

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be a testbed's name",
                cause="the name is also that of a folder",
                action="Use at most 31 lowercase letters, digits and dashes.",
            )
        self.name = name
        self.path = base() / name

    @classmethod
    def all(cls) -> list[State]:
        """Return all testbeds that have a folder: they are up, starting, or were killed."""
        folders = (path for path in sorted(base().iterdir()) if path.is_dir())
        return [cls(path.name) for path in folders if _NAME.fullmatch(path.name)]

    def hold(self, *, shared: bool = False) -> AbstractContextManager[None]:
        """Hold the testbed's lock. Raises UsageError while another process holds it.

        `shared`: for what neither measures nor changes the testbed.
        """
        return lock.hold(self._use, f"testbed {self.name}", shared=shared)

    @property
    def user(self) -> int | None:
        """PID of the process that makes, uses or takes down the testbed, if there is one."""
        return lock.holder(self._use)

    def discard_lock(self) -> None:
        """Remove the testbed's lock if its holder was killed."""
        lock.discard(self._use)

    @property
    def _use(self) -> Path:
        return self.path.with_name(f".{self.name}.lock")

    @property
    def prepared(self) -> bool:
        """Whether driver, probes and rxe devices were put on its nodes."""
        return (self.path / "prepared").exists()

    def mark_prepared(self) -> None:
        """Note that the nodes have all that a benchmark needs."""
        (self.path / "prepared").touch()

    @property
    def lock_file(self) -> Path:
        """The file that the supervisor keeps locked while it runs."""
        return self.path / "lock"

    def create(self, spec: TestbedSpec) -> None:
        """Create the folder, with only the spec in it. Raises UsageError for a long path."""
        check_socket(self.path / _LONGEST_SOCKET, "XDG_RUNTIME_DIR")
        self.remove()
        self.path.mkdir(mode=0o700)
        (self.path / "spec.json").write_text(json.dumps(spec.to_json(), indent=1))

    def spec(self) -> TestbedSpec:
        """Read the testbed's spec. Raises TestbedError if that fails."""
        try:
            return TestbedSpec.from_json(self._json("spec.json"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise TestbedError(
                f"cannot read the state of testbed {self.name}: {error}",
                cause="another version of rocelab made it, or it is being taken down",
                action="Use the rocelab that made it.",
            ) from None

    def _json(self, name: str) -> dict[str, Any]:
        return json_text.parse(read_named(self.path / name, limit=_MAX_JSON))

    def alive(self) -> bool:
        """Whether a supervisor holds the lock."""
        try:
            with self.lock_file.open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def mark_loaded(self, node: str, status: int) -> None:
        """Note that a machine's snapshot was read to its end; `status`: of its decompressor."""
        part = self.path / f"{node}.loaded.part"
        part.write_text(str(status))
        part.rename(self.path / f"{node}.loaded")

    def decompressor_status(self, node: str) -> int | None:
        """The status of the decompressor of a machine's snapshot; None while it runs."""
        try:
            return int((self.path / f"{node}.loaded").read_text())
        except FileNotFoundError:
            return None

    def exit_statuses(self) -> dict[str, int]:
        """Return the nodes whose QEMU has ended, with its exit status."""
        try:
            return self._json("died.json")
        except (OSError, ValueError):
            return {}

    def console(self, node: str) -> list[str]:
        """Return the lines of a node's console."""
        try:
            return (self.path / f"{node}.console").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def console_tail(self, node: str) -> str:
        """Return the last lines of a node's console, or its last panic with what led to it."""
        return "\n".join(last_words(self.console(node)))

    def stop(self, timeout: float = 30) -> None:
        """Ask the supervisor to stop all machines, and wait until it has ended."""
        try:
            pid = int((self.path / "supervisor.pid").read_text())
        except (FileNotFoundError, ValueError):
            pid = 0
        deadline = time.monotonic() + timeout
        while self.alive():
            if pid:
                late = time.monotonic() > deadline - 10
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"the supervisor of {self.name} (PID {pid}) does not end",
                    cause="the kernel cannot kill it, or it belongs to another user",
                    action=f"Look at it with `ps -o state,wchan,user,args {pid}`.",
                )
            time.sleep(0.05)
        self.remove()

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
