# SPDX-License-Identifier: GPL-2.0-or-later
"""Scales of Vega-Lite: from values to pixels, and the values that an axis marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

_BAND_PADDING = 0.1
_TINY = 1e-300
"""What stands for 0 on a logarithmic scale."""
_NICE = 10
"""The domain ends at multiples of the distance of so many ticks."""
_DECADES = 3
"""A logarithmic axis of more has only powers of ten."""


class Scale:
    """A continuous scale; `forward` makes it linear."""

    band = 0.0
    """Pixels of a value of a scale of names."""

    def __init__(
        self,
        domain: tuple[float, float],
        pixels: tuple[float, float],
        *,
        kind: str = "linear",
        base: float = 10,
        padding: float = 0,
    ) -> None:
        self.kind, self.domain = kind, domain
        forwards: dict[str, Callable[[float], float]] = {
            "log": lambda value: math.log(max(value, _TINY), base),
            "symlog": lambda value: math.copysign(math.log1p(abs(value)), value),
        }
        self._forward = forwards.get(kind, float)
        low, high = map(self._forward, domain)
        # where padding is asked for, the domain grows so that its ends are so far from the edges
        more = (high - low) * padding / (abs(pixels[1] - pixels[0]) - 2 * padding)
        self._low, self._span = low - more, (high - low + 2 * more) or 1.0
        self._from, self._pixels = pixels[0], pixels[1] - pixels[0]

    def __call__(self, value: Any) -> float:  # noqa: ANN401 - data
        """The pixel of a value; of a name, where its band begins."""
        return self._from + (self._forward(value) - self._low) / self._span * self._pixels

    def ticks(self, count: int) -> tuple[list[float], float]:
        """About so many round values, and their distance (0: they have none)."""
        low, high = self.domain
        if self.kind == "log":
            first, last = (
                round_(math.log10(max(end, _TINY)))
                for round_, end in ((math.floor, low), (math.ceil, high))
            )
            steps = (1,) if last - first > _DECADES else (1, 2, 5)
            powers = range(first, last + 1)
            every = [step * 10.0**power for power in powers for step in steps]
            return [value for value in every if low <= value <= high], 0
        step = tick_step(low, high, count)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [index * step for index in range(first, last + 1)], step


class Band(Scale):
    """A scale of names, each with a band."""

    def __init__(self, names: Sequence[str], length: float, inner: float) -> None:
        # as Vega-Lite: half of the padding at either end
        step = length / max(1, len(names))
        self.kind, self.band = "band", step * (1 - inner)
        self._starts = {name: step * (at + inner / 2) for at, name in enumerate(names)}
        self.names = list(names)

    def __call__(self, value: Any) -> float:  # noqa: ANN401 - data
        """Where the name's band begins."""
        return self._starts[value]


class Pixels(Scale):
    """No scale: values are pixels."""

    def __init__(self) -> None:
        super().__init__((0, 1), (0, 1))
        self.kind = "pixels"


def tick_step(low: float, high: float, count: int) -> float:
    """The round distance of about `count` values, as d3-array chooses it."""
    rough = (high - low) / max(1, count) or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    error = rough / power
    factor = 10 if error >= 50**0.5 else 5 if error >= 10**0.5 else 2 if error >= 2**0.5 else 1
    return power * factor


def continuous(
    asked: dict[str, Any], values: Sequence[float], pixels: tuple[float, float]
) -> Scale:
    """The scale that an encoding asks for, over the values of its layers."""
    kind = asked.get("type", "linear")
    if "domain" in asked:
        low, high = asked["domain"]
    else:
        finite = [value for value in values if math.isfinite(value)]
        low, high = min([*finite, 0.0]), max([*finite, 0.0])
        low = asked.get("domainMin", low)
    if not 0 <= high - low < math.inf:
        low, high = 0.0, 1.0  # a run folder may hold any number
    if low == high:
        high = low + 1.0
    if kind == "linear" and asked.get("nice", True):
        step = tick_step(low, high, _NICE)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    padding, base = asked.get("padding", 0), asked.get("base", 10)
    return Scale((low, high), pixels, kind=kind, base=base, padding=padding)


def band(asked: dict[str, Any], names: Sequence[str], length: float) -> Band:
    """The scale of names that an encoding asks for."""
    return Band(asked.get("domain", names), length, asked.get("paddingInner", _BAND_PADDING))
