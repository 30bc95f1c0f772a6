# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests share: what they start gets their signals; what was measured is kept."""

from __future__ import annotations

import signal
import sys


def pytest_configure() -> None:
    """Give child processes the default actions of SIGINT and SIGHUP.

    A shell's background jobs ignore SIGINT, and what nohup(1) starts SIGHUP. Children inherit that,
    but no handler: so pytest itself continues to ignore them.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_sessionfinish() -> None:
    """Keep what was measured: a worker that takes 10 s to end, as on a busy machine, is killed."""
    measuring = sys.modules.get("coverage")
    if measuring and (current := measuring.Coverage.current()):
        current.save()
