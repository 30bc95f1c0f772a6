# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet sequence numbers: 24 bits that wrap (IBA volume 1, chapter 9.7.1)."""

_HALF, _ALL = 1 << 23, 1 << 24


def behind(psn: int, start: int) -> int:
    """Return how far `psn` is after `start`; negative before it."""
    distance = (psn - start) % _ALL
    return distance - _ALL if distance >= _HALF else distance
