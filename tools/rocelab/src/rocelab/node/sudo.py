# SPDX-License-Identifier: GPL-2.0-or-later
"""sudo(8) before a command."""

from __future__ import annotations

from collections.abc import Sequence


def sudo(argv: Sequence[str]) -> list[str]:
    """The command line of `argv` as root, without a question."""
    return ["sudo", "-n", "--", *argv]
