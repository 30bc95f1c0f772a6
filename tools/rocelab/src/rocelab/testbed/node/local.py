# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine as a node."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rocelab.errors import MissingError
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.interface import DataLink
from rocelab.testbed.node.local_process import ByCommandLine
from rocelab.testbed.node.sudo import sudo

_NO_LINK = DataLink("", "", "", 0)


@dataclass(frozen=True)
class LocalConnection(ByCommandLine):
    """Run commands here, with sudo if needed (rocelab.testbed.node.command_node.Connection)."""

    is_root: bool

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv`."""
        return sudo(argv) if self.is_root and os.geteuid() else list(argv)

    def as_root(self) -> LocalConnection:
        """Return the same with sudo, unless we are root."""
        return self if self.is_root else LocalConnection(is_root=True)


def machine() -> CommandNode:
    """Return this machine as a node.

    Raises MissingError when we are not root and cannot use sudo without a password.
    """
    node = CommandNode("here", _NO_LINK, LocalConnection(is_root=os.geteuid() == 0))
    try:
        allowed = node.root.run(["true"], check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        raise MissingError(
            "the veth pair, its rxe devices and the probes need root on this machine",
            cause="you are not root, and sudo is not installed or asks for a password",
            action="Run `sudo -v` first, or run rocelab as root.",
        )
    return node


def accelerator(cpuinfo: str) -> Literal["native", "kvm", "tcg"]:
    """Return what executes a machine's instructions, according to its /proc/cpuinfo."""
    pairs = (line.partition(":") for line in cpuinfo.splitlines())
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    # QEMU's own processor model; guests of other hypervisors run in real time, as with KVM
    if fields.get("model name", "").startswith("QEMU TCG"):
        return "tcg"
    return "kvm" if "hypervisor" in fields.get("flags", "").split() else "native"


def read_cpuinfo() -> str:
    """Read /proc/cpuinfo of this machine."""
    return Path("/proc/cpuinfo").read_text(errors="replace")
