# SPDX-License-Identifier: GPL-2.0-or-later
"""Start modules of rocelab as processes."""

from __future__ import annotations

import sys


def command(module: str = "rocelab") -> tuple[str, ...]:
    """Return the beginning of a command line that runs a module."""
    # -P: the current folder's modules are none of rocelab's
    return (sys.executable, "-P", "-m", module)
