# SPDX-License-Identifier: GPL-2.0-or-later
"""Watch on its node whether a user's server can be asked."""

from __future__ import annotations

from rocelab.measure import listening
from rocelab.measure.command.guard import MARK, Guard, script
from rocelab.plans.ready import Ready
from rocelab.testbed.node.interface import Process

SAYS = "rocelab-exec: ready"
_POLL = """
until {condition}; do sleep 0.1; done 2>/dev/null
echo "{says}"
"""


def watch(ready: Ready, guard: Guard) -> Process | None:
    """Start what says `SAYS` when the server listens; None if that is not seen on the node."""
    if ready.by in ("line", "delay"):
        return None
    if ready.by == "any":
        text = script("listens.sh")
        words: tuple[str, ...] = (f"{text}\necho '{SAYS}'", "sh", MARK, guard.folder)
    else:
        condition, port = listening.condition(ready.port, by_rdma_cm=ready.by == "rdma_cm")
        words = (_POLL.format(condition=condition, says=SAYS), "sh", port)
    # with the mark, the guard ends it as well
    return guard.node.start(("env", f"{MARK}={guard.folder}", "sh", "-c", *words))
