# SPDX-License-Identifier: GPL-2.0-or-later
"""Format numbers and units for readers: SI units, and message sizes in binary multiples."""

from __future__ import annotations

import math
from collections.abc import Sequence

SPACE = "\N{NO-BREAK SPACE}"
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
ABSENT = "\N{EN DASH}"
"""Shown where there is no value."""

_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATE = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_COUNT_RATE = ((1e6, "M/s"), (1e3, "k/s"), (1.0, "1/s"))
_SCALES = {"ns": _TIME, "bytes/s": _RATE, "1/s": _COUNT_RATE}
_NAMES = {"bytes": "B", "1": ""}


ALL_SIZES = -1
"""The size of results that cover all sizes of a benchmark, such as the packets of one mpirun."""


def size(value: int) -> str:
    """Return a message size: `64 B`, `4 KiB`, `1 MiB`; other than whole multiples stay in bytes."""
    if value == ALL_SIZES:
        return "all sizes"
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor and value % factor == 0:
            return f"{value // factor}{NARROW_SPACE}{unit}"
    return f"{integer(value)}{NARROW_SPACE}B"


def integer(value: int) -> str:
    """Return an integer with commas between thousands, as the terminal and axes write it."""
    return f"{value:,}".replace("-", MINUS)


def number(value: float, digits: int = 3) -> str:
    """Return `value` to at least `digits` significant digits, never in exponent form.

    Digits before the decimal point are never rounded away: 123456.7 reads 123,457. A whole number,
    such as a count, has no decimals.
    """
    if not math.isfinite(value):
        return ABSENT
    if value == int(value):
        return integer(int(value))
    magnitude = int(f"{value:.{digits - 1}e}".partition("e")[2])  # 0 for 0.9996, which reads 1.00
    whole, _, fraction = f"{abs(value):.{max(0, digits - 1 - magnitude)}f}".partition(".")
    text = integer(int(whole)) + (f".{fraction}" if fraction else "")
    return MINUS + text if value < 0 else text


def scale(unit: str, values: list[float]) -> tuple[float, str]:
    """Return the divisor and the unit in which the largest of `values` reads best.

    Units without multiples here (bytes, counts, unknown units) are unchanged.
    """
    steps = _SCALES.get(unit)
    top = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if steps is None:
        return 1.0, _NAMES.get(unit, unit)
    for factor, name in steps:
        if top >= factor:
            return factor, name
    return steps[-1]


def quantity(value: float, unit: str, digits: int = 3) -> str:
    """Return a value with the unit in which it reads best: `12.3 µs`, `1.25 GB/s`, `64 B`."""
    factor, name = scale(unit, [value])
    return f"{number(value / factor, digits)}{NARROW_SPACE}{name}".rstrip(NARROW_SPACE)


def plural(count: int, noun: str) -> str:
    """Return `1 cell`, `2 cells`."""
    return f"{integer(count)} {noun}{'' if count == 1 else 's'}"


def listing(items: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
