# SPDX-License-Identifier: GPL-2.0-or-later
"""The state folder of a testbed: keys, sockets, consoles and the supervisor's lock.

Its mode is 0700, it is outside any repository, and it exists only while the testbed is up. The
supervisor holds a lock in it, so that a folder without a live supervisor is known to be stale.
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
from rocelab.testbed.qemu.machine_spec import TestbedSpec

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


def base() -> Path:
    """Return the folder for all testbeds of this user; create it if it is missing."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    # checked below: in /tmp another user may have created it first
    path = Path(runtime) / "rocelab" if runtime else Path(f"/tmp/rocelab-{os.getuid()}")  # noqa: S108
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise TestbedError(
            f"{path} is not a private folder of yours",
            cause="another user created it, or its permissions were changed",
            action="Set XDG_RUNTIME_DIR to a folder that only you can read.",
        )
    return path


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
        """Return all testbeds that are up, and remove stale folders."""
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
        """The file that the supervisor keeps locked while it runs."""
        return self.path / "lock"

    def create(self, spec: TestbedSpec) -> None:
        """Create the folder, with only the spec in it."""
        self.remove()
        self.path.mkdir(mode=0o700)
        (self.path / "spec.json").write_text(json.dumps(spec.to_json(), indent=1))

    def spec(self) -> TestbedSpec:
        """Read the testbed's spec. Raises TestbedError if that fails."""
        try:
            return TestbedSpec.from_json(json.loads((self.path / "spec.json").read_text()))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TestbedError(
                f"cannot read the state of testbed {self.name}: {error}",
                cause="another version of rocelab made it, or it is being taken down",
                action="Use the rocelab that made it.",
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
        """Return the nodes whose QEMU has ended, with its exit status."""
        try:
            return dict(json.loads((self.path / "died.json").read_text()))
        except FileNotFoundError:
            return {}

    def console_tail(self, node: str, lines: int = 20) -> str:
        """Return the last lines of a node's console, or those that lead up to its last panic."""
        try:
            text = (self.path / f"{node}.console").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        panics = [number for number, line in enumerate(text) if "Kernel panic" in line]
        if panics:
            # the kernel prints the reason before this line, registers and stack after it
            return "\n".join(text[max(0, panics[-1] - lines) : panics[-1] + 1])
        return "\n".join(text[-lines:])

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
