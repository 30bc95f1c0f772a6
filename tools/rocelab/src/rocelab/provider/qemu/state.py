# SPDX-License-Identifier: GPL-2.0-or-later
"""The state folder of a testbed: keys, sockets, consoles and the supervisor's lock.

It is 0700, outside any repository, and exists only while the testbed does. The supervisor holds
a lock in it, so that a folder without a live supervisor is recognised as left over.
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
from contextlib import suppress
from pathlib import Path

from rocelab.errors import TestbedError, UsageError
from rocelab.provider.qemu.spec import TestbedSpec

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


def base() -> Path:
    """The folder of all testbeds of this user, made if it is missing."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    # checked below: in /tmp somebody else may have been first
    path = Path(runtime) / "rocelab" if runtime else Path(f"/tmp/rocelab-{os.getuid()}")  # noqa: S108
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise TestbedError(
            f"{path} is not a private folder of yours",
            cause="another user made it",
            action="set XDG_RUNTIME_DIR to a folder that only you can read",
        )
    return path


class State:
    """One testbed's folder."""

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be a testbed's name",
                action="use small letters, digits and dashes, at most 31",
            )
        self.name = name
        self.path = base() / name

    @classmethod
    def all(cls) -> list[State]:
        """Every testbed that is up; left-over folders are removed on the way."""
        found = []
        for path in sorted(base().iterdir()):
            if path.is_dir() and _NAME.fullmatch(path.name):
                state = cls(path.name)
                if state.alive():
                    found.append(state)
                else:
                    state.remove()
        return found

    @property
    def lock_file(self) -> Path:
        """Held by the supervisor for as long as it lives."""
        return self.path / "lock"

    def create(self, spec: TestbedSpec) -> None:
        """Make the folder, empty but for the spec."""
        self.remove()
        self.path.mkdir(mode=0o700)
        (self.path / "spec.json").write_text(json.dumps(spec.to_json(), indent=1))

    def spec(self) -> TestbedSpec:
        """What the testbed consists of. Raises TestbedError if that cannot be read."""
        try:
            return TestbedSpec.from_json(json.loads((self.path / "spec.json").read_text()))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TestbedError(
                f"testbed {self.name} cannot be read: {error}",
                cause="another version of rocelab made it, or it is going down just now",
                action="use the rocelab that made it",
            ) from None

    def alive(self) -> bool:
        """Whether a supervisor holds the lock."""
        try:
            with self.lock_file.open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def died(self) -> dict[str, int]:
        """Nodes whose QEMU has ended, with its exit status."""
        try:
            return dict(json.loads((self.path / "died.json").read_text()))
        except FileNotFoundError:
            return {}

    def console_tail(self, node: str, lines: int = 20) -> str:
        """The end of a node's console: from its last panic on, else the last lines."""
        try:
            text = (self.path / f"{node}.console").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        panics = [number for number, line in enumerate(text) if "Kernel panic" in line]
        if panics:
            # what the kernel says of it stands before, its registers and stack behind
            return "\n".join(text[max(0, panics[-1] - lines) : panics[-1] + 1])
        return "\n".join(text[-lines:])

    def stop(self, timeout: float = 30) -> None:
        """Ask the supervisor to end everything, and wait until it has."""
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
                raise TestbedError(f"the supervisor of {self.name} (PID {pid}) does not end")
            time.sleep(0.05)
        self.remove()

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
