# SPDX-License-Identifier: GPL-2.0-or-later
"""What ways to machines of a user's own share: sudo(8) or no root, and a site's environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from rocelab.errors import TestbedError
from rocelab.testbed.node.command_node import CommandNode, Connection
from rocelab.testbed.node.interface import DataLink
from rocelab.testbed.node.sudo import sudo


@dataclass(frozen=True, kw_only=True)
class UserRights:
    """Who a user is on a machine, and the environment of their commands there."""

    sudo: bool = False
    """Whether commands run through sudo(8)."""
    is_root: bool = True
    """Whether the user is root."""
    no_root: str = ""
    """Why commands cannot run as root; empty if they can."""
    environment: tuple[str, ...] = ()
    """Variables of all commands but those of sudo, as `NAME=value`."""

    @property
    def place(self) -> str:
        """The machine, for error messages."""
        raise NotImplementedError

    def words(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` once we are there."""
        if self.sudo:
            return sudo(argv)
        return ["env", *self.environment, *argv] if self.environment else list(argv)

    def as_root(self) -> Self:
        """Return the same with sudo, unless the user is root. Raises TestbedError without root."""
        if self.no_root:
            raise TestbedError(
                f"a command needs root on {self.place}",
                cause=self.no_root,
                action="Let this user run sudo without a password; docs/root.md lists what for.",
            )
        return self if self.is_root or self.sudo else replace(self, sudo=True)


class UserConnection(Connection, Protocol):
    """A connection that knows the user's rights."""

    @property
    def is_root(self) -> bool:
        """Whether the user is root."""

    @property
    def no_root(self) -> str:
        """Why commands cannot run as root; empty if they can."""


class UserNode(CommandNode):
    """A machine of the user's own."""

    def __init__(
        self, name: str, link: DataLink, target: UserConnection, patience: float = 1
    ) -> None:
        super().__init__(name, link, target, patience)
        self.rights = target

    @property
    def has_root(self) -> bool:
        """Whether commands can run as root."""
        return not self.rights.no_root
