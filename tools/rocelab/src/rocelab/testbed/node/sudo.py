# SPDX-License-Identifier: GPL-2.0-or-later
"""Prefix a command with sudo(8)."""

from __future__ import annotations

from collections.abc import Sequence


def sudo(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` as root and never asks for a password."""
    return ["sudo", "-n", "--", *argv]
