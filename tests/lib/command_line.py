# SPDX-License-Identifier: GPL-2.0-or-later
"""The `rocelab` command, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys


def rocelab(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [sys.executable, "-m", "rocelab", *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
