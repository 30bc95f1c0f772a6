# SPDX-License-Identifier: GPL-2.0-or-later
"""Run several short commands as one: each costs a round trip, and a login shell's work."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence

from rocelab.errors import TestbedError
from rocelab.testbed.node.interface import Node


def outputs(node: Node, commands: Sequence[Sequence[str]], *, timeout: float = 60) -> list[str]:
    """Run these commands one after the other; return what each printed on stdout.

    What fails does not stop those behind it. Raises TestbedError if the node does not answer, or
    ends before the last.
    """
    # no command can print it by chance
    mark = f"rocelab-{secrets.token_hex(8)}"
    script = "".join(f"{shlex.join(argv)} </dev/null\necho; echo {mark}\n" for argv in commands)
    done = node.run(("sh", "-c", script), timeout=timeout, check=False)
    *texts, _rest = done.stdout.split(f"\n{mark}\n")
    if len(texts) != len(commands):
        raise TestbedError(
            f"{node.name} answered {len(texts)} of {len(commands)} commands",
            cause=done.stderr.strip()[-500:] or "its shell ended early",
            action=f"Log in with `{node.login}` and see what it is doing.",
        )
    return texts
