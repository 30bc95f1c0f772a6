# SPDX-License-Identifier: GPL-2.0-or-later
"""When a user's server can be asked: by its listeners, by a line that it prints, or by time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rocelab.errors import UsageError
from rocelab.strict import quote

_PORT = re.compile(r"[1-9][0-9]{0,4}")
_SECONDS = re.compile(r"[0-9]{1,5}(\.[0-9]{1,3})?")

By = Literal["any", "tcp", "rdma_cm", "line", "delay"]


@dataclass(frozen=True)
class Ready:
    """What to wait for."""

    by: By = "any"
    port: int = 0
    line: str = ""
    seconds: float = 0

    @classmethod
    def parse(cls, text: str, option: str = "--ready") -> Ready:
        """Read the value of an option or a key, which `option` names. Raises UsageError."""
        kind, colon, value = text.partition(":")
        if kind in ("tcp", "rdma_cm") and _PORT.fullmatch(value) and int(value) < 1 << 16:
            return cls("tcp" if kind == "tcp" else "rdma_cm", port=int(value))
        if kind == "line" and value:
            return cls("line", line=value)
        if kind == "delay" and _SECONDS.fullmatch(value):
            return cls("delay", seconds=float(value))
        raise UsageError(
            f"{option} {quote(text)} says nothing to wait for",
            cause="the port is no number from 1 to 65535" if colon else "it has no colon",
            action="Give tcp:PORT, rdma_cm:PORT, line:TEXT or delay:SECONDS.",
        )

    @property
    def what(self) -> str:
        """What the server did not do, for a message."""
        return {
            "any": "listened on a TCP port or with rdma_cm",
            "tcp": f"listened on TCP port {self.port}",
            "rdma_cm": f"listened on port {self.port} with rdma_cm",
            "line": f"printed {quote(self.line)}",
            "delay": f"ran for {self.seconds:g} s",
        }[self.by]
