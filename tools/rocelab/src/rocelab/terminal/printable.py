# SPDX-License-Identifier: GPL-2.0-or-later
"""Untrusted text for a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text with every control and format character made visible; spaces of any width stay."""
    return "".join(
        char if char.isprintable() or unicodedata.category(char) == "Zs" else f"\\x{ord(char):02x}"
        for char in text
    )
