# SPDX-License-Identifier: GPL-2.0-or-later
"""A node reached over SSH.

One multiplexed connection carries all commands, because under emulation a key exchange takes
longer than most commands.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rocelab.testbed.node import awake, local_process
from rocelab.testbed.node.awake import LocalProcess
from rocelab.testbed.node.interface import DataLink
from rocelab.testbed.node.user_connection import UserNode, UserRights
from rocelab.testbed.node.waiting_shells import ShellEndedError, WaitingShells

# ssh(1) exits with this status when the connection fails. So may a command, which then says so.
_SSH_FAILED = 255
_COMMANDS_OWN = "rocelab: this status is the command's"
_SAY_WHOSE = f'"$@"; s=$?; [ $s -ne {_SSH_FAILED} ] || echo "{_COMMANDS_OWN}" >&2; exit $s'
_START_SECONDS = 60
"""Within which a shell that is to become a command answers."""


@dataclass(frozen=True)
class SshTarget(UserRights):
    """How to reach a node; ssh(1) decides where a field is None."""

    host: str
    control_path: Path
    port: int | None = None
    user: str | None = None
    identity: Path | None = None
    """The private key; if set, ssh offers no other."""
    known_hosts: Path | None = None
    configured: bool = True
    """Whether ssh(1) reads its configuration files."""
    of_testbed: str = ""
    """The command line that logs in, if it is not ssh(1)."""
    shells: WaitingShells | None = field(default=None, compare=False)
    """Shells that wait there for commands; None: each command logs in afresh."""

    @property
    def place(self) -> str:
        """The machine, for error messages."""
        return self.host

    @property
    def login(self) -> str:
        """The command line with which a person logs in."""
        if self.of_testbed:
            return self.of_testbed
        options = ["-l", self.user] if self.user else []
        options += ["-p", str(self.port)] if self.port else []
        options += ["-i", str(self.identity)] if self.identity else []
        return shlex.join(["ssh", *options, "--", self.host])

    def options(self) -> list[str]:
        """Return options for ssh(1): only known host keys, and never a prompt."""
        settings = {
            "BatchMode": "yes",
            "ClearAllForwardings": "yes",
            "ConnectTimeout": "20",
            "ControlPath": option_value(self.control_path),
            "LogLevel": "ERROR",
            "ServerAliveCountMax": "8",
            "ServerAliveInterval": "15",
            "StrictHostKeyChecking": "yes",
        }
        if self.identity:
            settings |= {"IdentitiesOnly": "yes", "IdentityFile": option_value(self.identity)}
        if self.known_hosts:
            settings["UserKnownHostsFile"] = option_value(self.known_hosts)
        options = [] if self.configured else ["-F", "none"]
        options += ["-l", self.user] if self.user else []
        options += ["-p", str(self.port)] if self.port else []
        for key, value in settings.items():
            options += ["-o", f"{key}={value}"]
        return options

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the local command line that runs `argv` on the node, quoted for its shell."""
        return ["ssh", *self.options(), "--", self.host, shlex.join(self.words(argv))]

    def run(
        self, argv: Sequence[str], *, stdin: bytes, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, by a waiting shell if it reads nothing.

        Raises subprocess.TimeoutExpired.
        """
        if self.shells is None or stdin:
            shell_line = shlex.join(("sh", "-c", _SAY_WHOSE, "sh", *self.words(argv)))
            command = ["ssh", *self.options(), "--", self.host, shell_line]
            return awake.run(command, stdin=stdin, seconds=seconds)
        try:
            done = self.shells.run(self.words(argv), seconds)
        except ShellEndedError as ended:
            return subprocess.CompletedProcess(list(argv), _SSH_FAILED, b"", ended.output)
        if done.returncode == _SSH_FAILED:
            done.stderr += f"{_COMMANDS_OWN}\n".encode()
        return done

    def start(self, argv: Sequence[str], *, lifeline: bool) -> LocalProcess:
        """Start a command, by a waiting shell if there are any."""
        if self.shells is not None:
            by = self.shells.become if lifeline else self.shells.start
            with suppress(ShellEndedError, subprocess.TimeoutExpired):
                return by(self.words(argv), _START_SECONDS)
        # without the shell, ssh(1) says what is wrong
        return local_process.start(self.command(argv), lifeline=lifeline)

    def waiting_shells(self, *, at_first: int = 2) -> WaitingShells:
        """Have shells wait on the node for commands; `at_first` are started at once."""
        login = ["ssh", *self.options(), "--", self.host, "exec sh"]
        return WaitingShells(login, at_first=at_first)

    def is_lost(self, done: subprocess.CompletedProcess[bytes]) -> bool:
        """Whether the connection failed."""
        return done.returncode == _SSH_FAILED and _COMMANDS_OWN.encode() not in done.stderr

    def noise(self, line: str) -> bool:
        """Whether a line says whose the status is: ssh(1) itself is silent unless it fails."""
        return line.strip() == _COMMANDS_OWN


def option_value(path: Path) -> str:
    """Return a path as ssh_config(5) wants it: there, blanks separate and % begins a token."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'


class SshNode(UserNode):
    """A node reached over SSH."""

    def __init__(self, name: str, link: DataLink, target: SshTarget, patience: float = 1) -> None:
        super().__init__(name, link, target, patience)
        self.target = target

    def connect(self, *, timeout: float) -> bool:
        """Open the shared connection; return whether the node answered.

        We start a separate master. With ControlMaster=auto the first command would become the
        master and hold its pipes open.
        """
        master = ["ssh", "-M", "-N", "-f", *self.target.options(), "--", self.target.host]
        timeout *= self.patience
        try:
            done = subprocess.run(
                master,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode == 0 and self.target.shells:
            self.target.shells.open()
        return done.returncode == 0

    def close(self) -> None:
        """Close the shared connection, if it is open, and the shells that wait there."""
        if self.target.shells:
            self.target.shells.close()
        subprocess.run(
            ["ssh", *self.target.options(), "-O", "exit", self.target.host],
            capture_output=True,
            check=False,
            timeout=20,
        )
