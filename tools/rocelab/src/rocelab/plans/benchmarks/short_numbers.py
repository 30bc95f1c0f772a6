# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers as examples of librdmacm and libfabric shorten them: size_str() and cnt_str()."""

from __future__ import annotations


def size(number: int) -> str:
    """Return a size in bytes, such as 64, 1k, 1.5k."""
    for power, letter in ((30, "g"), (20, "m"), (10, "k")):
        base = 1 << power
        if number >= base:
            fraction = number % base * 10 // base if number // base < 10 else 0
            return f"{number // base}{f'.{fraction}' if fraction else ''}{letter}"
    return str(number)


def count(number: int) -> str:
    """Return a count, such as 100, 1k, 2m."""
    for base, letter in ((10**9, "b"), (10**6, "m"), (10**3, "k")):
        if number >= base:
            return f"{number // base}{letter}"
    return str(number)
