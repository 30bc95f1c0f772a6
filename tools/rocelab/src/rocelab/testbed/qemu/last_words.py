# SPDX-License-Identifier: GPL-2.0-or-later
"""What a node's console said last, of a panic the reason first; or what keeps it from booting."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab.testbed.node import kernel_log

_PANIC = "Kernel panic"
_REPORT = 150
"""An oops with stack, modules and twice the registers has fewer lines before the panic."""
_MAX_BUGS = 10
"""With more reports of bugs a node does not boot: they take it longer than the next one to come."""


def last_words(console: Sequence[str], lines: int = 40) -> list[str]:
    """Return the last lines, or the first of the oops that ended in a panic, and the panic."""
    panics = [number for number, line in enumerate(console) if _PANIC in line]
    if not panics:
        return list(console[-lines:])
    end = panics[-1]
    before = range(max(0, end - _REPORT), end)
    first = next((number for number in before if kernel_log.is_upset(console[number])), None)
    if first is None or end - first <= lines:
        return list(console[max(0, end - lines) if first is None else first : end + 1])
    left_out = end - first - lines
    return [*console[first : first + lines], f"[{left_out} lines left out]", console[end]]


def endless_reports(console: Sequence[str], lines: int = 40) -> list[str]:
    """Return the first report, from its first line, of a kernel that reports one bug after another.

    Empty: it does not.
    """
    bugs = [number for number, line in enumerate(console) if kernel_log.BUG.search(line)]
    return list(console[bugs[0] :][:lines]) if len(bugs) > _MAX_BUGS else []
