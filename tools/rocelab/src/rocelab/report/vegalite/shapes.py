# SPDX-License-Identifier: GPL-2.0-or-later
"""Elements of SVG, and the symbols of points."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

Element = ElementTree.Element
NAMESPACE = "http://www.w3.org/2000/svg"


def short(value: float) -> str:
    """A coordinate."""
    return f"{round(value, 2):g}" if abs(value) < 1e5 else f"{value:.0f}"


def element(parent: Element | None, name: str, **attributes: str | float | None) -> Element:
    """An element of SVG; `_` stands for `-` in names, and None leaves an attribute out."""
    texts = {
        key.rstrip("_").replace("_", "-"): value if isinstance(value, str) else short(value)
        for key, value in attributes.items()
        if value is not None
    }
    made = Element(f"{{{NAMESPACE}}}{name}", texts)
    if parent is not None:
        parent.append(made)
    return made


def text(parent: Element, content: str, **attributes: str | float | None) -> Element:
    """A text."""
    made = element(parent, "text", **attributes)
    made.text = content
    return made


def _polygon(*corners: tuple[float, float]) -> str:
    return "M" + "L".join(f"{short(x)},{short(y)}" for x, y in corners) + "Z"


def _triangle(x: float, y: float, r: float, turn: int) -> str:
    high = r * 3**0.5 / 2 * turn
    return _polygon((x, y - high), (x - r, y + high), (x + r, y + high))


def _cross(x: float, y: float, r: float) -> str:
    s = r / 2.5
    corners = [(-r, -s), (-s, -s), (-s, -r), (s, -r), (s, -s), (r, -s)]
    corners += [(-a, -b) for a, b in corners]
    return _polygon(*((x + a, y + b) for a, b in corners))


_SYMBOLS: dict[str, Callable[[float, float, float], str]] = {
    "square": lambda x, y, r: _polygon(
        (x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)
    ),
    "diamond": lambda x, y, r: _polygon((x - r, y), (x, y - r), (x + r, y), (x, y + r)),
    "cross": _cross,
    "triangle-up": lambda x, y, r: _triangle(x, y, r, 1),
    "triangle-down": lambda x, y, r: _triangle(x, y, r, -1),
    "triangle-right": lambda x, y, r: _polygon(
        (x - r * 3**0.5 / 2, y - r), (x + r * 3**0.5 / 2, y), (x - r * 3**0.5 / 2, y + r)
    ),
}


def symbol(
    parent: Element, shape: str, x: float, y: float, size: float, **attributes: str | float | None
) -> Element:
    """A point's symbol; `size` is the area of the square around it, as in Vega."""
    radius = size**0.5 / 2
    if path := _SYMBOLS.get(shape):
        return element(parent, "path", d=path(x, y, radius), **attributes)
    return element(parent, "circle", cx=x, cy=y, r=radius, **attributes)
