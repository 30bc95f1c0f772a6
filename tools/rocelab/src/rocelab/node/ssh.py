# SPDX-License-Identifier: GPL-2.0-or-later
"""A node behind SSH: every provider's nodes are reached this way.

One multiplexed connection carries all commands, because a key exchange under emulation takes
longer than most commands do.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocelab.node.base import DataLink
from rocelab.node.command import CommandNode
from rocelab.node.sudo import sudo

# what ssh(1) exits with when the connection, not the command, failed
_SSH_FAILED = 255


@dataclass(frozen=True)
class SshTarget:
    """How to reach a node; what is None is as ssh(1) decides."""

    host: str
    control_path: Path
    port: int | None = None
    user: str | None = None
    identity: Path | None = None
    """The private key; with it, no other is offered."""
    known_hosts: Path | None = None
    configured: bool = True
    """Whether the user's configuration of ssh(1) counts."""
    sudo: bool = False
    """Whether commands go through sudo(8)."""
    is_root: bool = True
    """Whether `user` is root."""

    def options(self) -> list[str]:
        """Options of ssh(1): a host key that is known or nothing, and no question asked."""
        settings = {
            "BatchMode": "yes",
            "ClearAllForwardings": "yes",
            "ConnectTimeout": "20",
            "ControlPath": str(self.control_path),
            "LogLevel": "ERROR",
            "ServerAliveCountMax": "8",
            "ServerAliveInterval": "15",
            "StrictHostKeyChecking": "yes",
        }
        if self.identity:
            settings |= {"IdentitiesOnly": "yes", "IdentityFile": str(self.identity)}
        if self.known_hosts:
            settings["UserKnownHostsFile"] = str(self.known_hosts)
        options = [] if self.configured else ["-F", "none"]
        options += ["-l", self.user] if self.user else []
        options += ["-p", str(self.port)] if self.port else []
        for key, value in settings.items():
            options += ["-o", f"{key}={value}"]
        return options

    def command(self, argv: Sequence[str]) -> list[str]:
        """The local command line that runs `argv` on the node, each word quoted for its shell."""
        words = sudo(argv) if self.sudo else argv
        return ["ssh", *self.options(), "--", self.host, shlex.join(words)]

    def as_root(self) -> SshTarget:
        """The same with sudo, unless root is who logs in."""
        return self if self.is_root or self.sudo else replace(self, sudo=True)

    def lost(self, done: subprocess.CompletedProcess[bytes]) -> bool:
        """Whether the connection failed."""
        return done.returncode == _SSH_FAILED


class SshNode(CommandNode):
    """A node behind SSH."""

    def __init__(self, name: str, link: DataLink, target: SshTarget, patience: float = 1) -> None:
        super().__init__(name, link, target, patience)
        self.target = target

    def connect(self, *, timeout: float) -> bool:
        """Open the shared connection; whether the node answered.

        A master of its own, not ControlMaster=auto: that one would inherit, and hold open, the
        pipes of the command that happened to be first.
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
        return done.returncode == 0

    def close(self) -> None:
        """End the shared connection, if one is open."""
        subprocess.run(
            ["ssh", *self.target.options(), "-O", "exit", self.target.host],
            capture_output=True,
            check=False,
            timeout=20,
        )
