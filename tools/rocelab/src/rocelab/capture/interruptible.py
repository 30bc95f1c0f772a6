# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading in steps, which a signal ends early with what was read so far."""

from __future__ import annotations

from collections.abc import Callable


def run_steps(step: Callable[[], bool], stop: Callable[[], None] | None) -> bool:
    """Call `step` until it returns False; return whether a signal came meanwhile.

    The first KeyboardInterrupt calls `stop`, after which `step` comes to its end soon. A second one
    is raised; without `stop`, the first one. Python looks for signals where a loop jumps back: that
    must be within the `try`.
    """
    interrupted = False
    while True:
        try:
            while step():
                pass
            return interrupted
        except KeyboardInterrupt:
            if interrupted or stop is None:
                raise
            interrupted = True
            stop()
