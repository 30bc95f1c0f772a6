# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting for what happens elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(
    what: str,
    done: Callable[[], object],
    *,
    seconds: float = 300,
    pause: float = 0.05,
    left: Callable[[], str] = str,
) -> None:
    """Poll until `done` is true; fail with `what`, and what is `left`, after some seconds."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}\n{left()}"
        time.sleep(pause)
