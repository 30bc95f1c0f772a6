# SPDX-License-Identifier: GPL-2.0-or-later
"""How slow this machine is at the moment, for bounds on the processor's time."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

_START_SECONDS = 0.065
"""Of the processor, that `rocelab --help` takes in docs/costs.md."""


@functools.cache
def slowness() -> float:
    """Return how many times longer a start takes here than there; 1 if it takes less."""
    return max(1.0, sorted(_start() for _ in range(3))[1] / _START_SECONDS)


def _start() -> float:
    command = (sys.executable, "-m", "rocelab", "--help")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime
