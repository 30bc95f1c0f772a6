# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine as a node."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rocelab.errors import MissingError
from rocelab.node.base import DataLink
from rocelab.node.command import CommandNode
from rocelab.node.sudo import sudo

_NO_LINK = DataLink("", "", "", 0)


@dataclass(frozen=True)
class LocalWay:
    """Nothing between us and the command, but for sudo (rocelab.node.command.Way)."""

    is_root: bool

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line."""
        return sudo(argv) if self.is_root and os.geteuid() else list(argv)

    def lost(self, done: subprocess.CompletedProcess[bytes]) -> bool:
        """Never: there is no connection."""
        del done
        return False

    def as_root(self) -> LocalWay:
        """The same with sudo, unless we are root."""
        return self if self.is_root else LocalWay(is_root=True)


def machine() -> CommandNode:
    """This machine. Raises MissingError when we are neither root nor may become so unasked."""
    node = CommandNode("here", _NO_LINK, LocalWay(is_root=os.geteuid() == 0))
    try:
        allowed = node.root.run(["true"], check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        raise MissingError(
            "the pair, its rxe devices and the probes need root on this machine",
            cause="you are not root, and sudo is not installed or asks for a password",
            action="run it as root, or `sudo -v` first",
        )
    return node


def executes(cpuinfo: str) -> Literal["native", "kvm", "tcg"]:
    """What executes this machine's instructions, from /proc/cpuinfo."""
    pairs = (line.partition(":") for line in cpuinfo.splitlines())
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    # a processor model of QEMU's own; another hypervisor's guest runs in real time, as KVM's does
    if fields.get("model name", "").startswith("QEMU TCG"):
        return "tcg"
    return "kvm" if "hypervisor" in fields.get("flags", "").split() else "native"


def read_cpuinfo() -> str:
    """/proc/cpuinfo of this machine."""
    return Path("/proc/cpuinfo").read_text(errors="replace")
