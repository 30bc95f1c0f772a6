# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user wants run, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rocelab.errors import UsageError
from rocelab.limits import MAX_NODES
from rocelab.measure.command.files import Files
from rocelab.plans.catalog import TRANSPORTS, Transport
from rocelab.plans.ready import Ready
from rocelab.strict import quote

_NODE = re.compile(r"n([1-9][0-9]{0,3})")
_COUNT = re.compile(r"[1-9][0-9]{0,3}")
_T = TypeVar("_T")
_V1 = 1
PEER = "ROCELAB_PEER_ADDRESS"
"""The variable with the other node's address."""


@dataclass(frozen=True)
class On:
    """Which nodes run the command: the one with a number, or the first ones; 0: all."""

    node: int = 0
    first: int = 0

    @classmethod
    def parse(cls, text: str) -> On:
        """Read the option's value. Raises UsageError."""
        if text == "all":
            return cls()
        if match := _NODE.fullmatch(text):
            one = cls(node=int(match[1]))
        elif _COUNT.fullmatch(text):
            one = cls(first=int(text))
        else:
            one = cls(first=MAX_NODES + 1)
        if one.least > MAX_NODES:
            raise UsageError(
                f"--on {quote(text)} names no nodes",
                cause=f"nodes are n1 to n{MAX_NODES}",
                action="Give one, such as n2, a number of nodes, or all.",
            )
        return one

    @property
    def several(self) -> bool:
        """Whether it can be more than one."""
        return not self.node and self.first != 1

    @property
    def least(self) -> int:
        """How many nodes the testbed needs."""
        return max(self.node, self.first, 2)

    def of(self, nodes: Sequence[_T]) -> Sequence[_T]:
        """Return the chosen ones of a testbed's nodes."""
        if self.node:
            return nodes[self.node - 1 : self.node]
        return nodes[: self.first or len(nodes)]


@dataclass(frozen=True)
class Request:
    """A command, and a server before it if there is one."""

    argv: tuple[str, ...]
    on: On = field(default_factory=lambda: On(node=1))
    server: tuple[str, ...] = ()
    """Runs on the second node, and the command on the first."""
    ready: Ready = field(default_factory=Ready)
    transport: Transport = TRANSPORTS["rxe-v2"]
    seconds: float | None = None
    """Limit for the command, with its server; None: no limit."""
    prefix: bool = True
    """Whether the name of a node is in front of each line, if several print."""
    tty: bool = False
    files: Files = field(default_factory=Files)
    capture: Path | None = None
    """File for what crosses the link between the nodes meanwhile."""
    alone: bool = False
    """Whether nothing else may use the testbed meanwhile."""

    @property
    def nodes(self) -> int:
        """How many nodes it needs at least."""
        words = (word for word in self.argv if "{peer}" in word or PEER in word)
        first = tuple(self.on.of((1, 2))) == (1,)
        alone = first and not self.server and not self.needs_testbed_alone
        return 1 if alone and not any(words) else self.on.least

    @property
    def needs_testbed_alone(self) -> bool:
        """Whether other commands on the testbed would be disturbed, or disturb it."""
        return self.alone or self.transport.roce == _V1 or self.capture is not None
