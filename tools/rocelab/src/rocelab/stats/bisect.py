# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the first of several steps from which on something holds. Pure functions."""

from __future__ import annotations

from collections.abc import Callable


def first(count: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number from 1 to `count` for which `holds`.

    It must hold for `count`, not for 0, and for every number after the first; neither end is
    asked about.
    """
    without, with_it = 0, count
    while with_it - without > 1:
        middle = (without + with_it) // 2
        if holds(middle):
            with_it = middle
        else:
            without = middle
    return with_it
