# SPDX-License-Identifier: GPL-2.0-or-later
"""Where this user's rocelab keeps what it can make again."""

from __future__ import annotations

from pathlib import Path

from rocelab.conditions import home, xdg_folder


def cache_dir() -> Path:
    """Return $XDG_CACHE_HOME/rocelab, which may not exist."""
    return (xdg_folder("XDG_CACHE_HOME") or home() / ".cache") / "rocelab"
