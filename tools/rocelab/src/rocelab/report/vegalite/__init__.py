# SPDX-License-Identifier: GPL-2.0-or-later
"""Draw the part of Vega-Lite that our charts use, without a browser engine.

Layers of bars, lines, points, rules and texts; linear and logarithmic scales, and bands of names;
axes, a legend, and charts next to each other. What is laid out needs no font of this machine: it
is measured by Arial's widths.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from rocelab.report.vegalite import text
from rocelab.report.vegalite.chart import Chart
from rocelab.report.vegalite.shapes import NAMESPACE, Element, element, short, symbol
from rocelab.report.vegalite.shapes import text as draw_text

_EDGE = 5
_TITLE_GAP = 10


def draw(spec: dict[str, Any]) -> str:
    """Return a specification, with its `config`, as SVG."""
    config = spec["config"]
    datasets = spec["datasets"]
    parts = spec.get("concat", [spec])
    charts = [Chart(part, config, datasets) for part in parts]
    root = element(None, "svg", version="1.1", font_family=config["font"])
    groups = []
    for chart, part in zip(charts, parts, strict=True):
        group = Element(f"{{{NAMESPACE}}}g")
        chart.draw(group)
        _title(chart, group, part.get("title"), config["title"])
        groups.append(group)
    columns = min(len(charts), spec.get("columns", 1))
    spacing = config["concat"]["spacing"]
    wide, high = _arrange(root, charts, groups, columns, spacing)
    if not config["legend"]["disable"]:
        wide, high = _legend(root, charts, wide, high, config["legend"])
    wide, high = wide + _EDGE, high + _EDGE
    if config["background"] != "transparent":
        ground = element(None, "rect", width=wide, height=high, fill=config["background"])
        root.insert(0, ground)
    root.set("width", f"{wide:.0f}")
    root.set("height", f"{high:.0f}")
    root.set("viewBox", f"0 0 {wide:.0f} {high:.0f}")
    return ElementTree.tostring(root, encoding="unicode")


def _title(chart: Chart, group: Element, title: str | None, style: dict[str, Any]) -> None:
    if not title:
        return
    up = chart.room.top + _TITLE_GAP
    draw_text(
        group,
        title,
        x=-chart.room.left,
        y=-up,
        fill=style["color"],
        font_size=style["fontSize"],
        font_weight=str(style["fontWeight"]),
    )
    chart.room.top = up + style["fontSize"]
    # (bold is wider)
    beyond = text.width(title, style["fontSize"] * 1.06) - chart.room.left - chart.width
    chart.room.right = max(chart.room.right, beyond)


def _arrange(
    root: Element, charts: list[Chart], groups: list[Element], columns: int, spacing: float
) -> tuple[float, float]:
    """Put the charts into a grid whose plots are in line; return its size."""
    left = [0.0] * columns
    right = [0.0] * columns
    for at, chart in enumerate(charts):
        left[at % columns] = max(left[at % columns], chart.room.left)
        right[at % columns] = max(right[at % columns], chart.width + chart.room.right)
    y = float(_EDGE)
    x = 0.0
    for first in range(0, len(charts), columns):
        row = charts[first : first + columns]
        y += max(chart.room.top for chart in row)
        x = float(_EDGE)
        for at, group in enumerate(groups[first : first + columns]):
            # half a pixel: lines then cover whole pixels
            corner = (int(x + left[at]) + 0.5, int(y) + 0.5)
            group.set("transform", f"translate({short(corner[0])},{short(corner[1])})")
            root.append(group)
            x += left[at] + right[at] + spacing
        y += max(chart.height + chart.room.bottom for chart in row) + spacing
    whole = _EDGE + sum(left) + sum(right) + spacing * (columns - 1)
    return whole, y - spacing


def _legend(
    root: Element, charts: list[Chart], wide: float, high: float, style: dict[str, Any]
) -> tuple[float, float]:
    """Draw the legend below the charts; return the size with it."""
    entries: dict[str, dict[str, Any]] = {}
    for chart in charts:
        for name, colour, mark, dash in chart.entries():
            entry = entries.setdefault(name, {"colour": colour, "marks": [], "dash": None})
            entry["marks"].append(mark)
            entry["dash"] = entry["dash"] or dash
    size = style["labelFontSize"]
    x, y = float(_EDGE), high + 26
    for name, entry in entries.items():
        room = 30 if "line" in entry["marks"] else 16
        length = room + text.width(name, size) * text.WIDER + 14
        if x > _EDGE and x + length > max(wide, 400):
            x, y = float(_EDGE), y + 18
        _swatch(root, x, y - size * 0.35, style["symbolSize"], entry)
        draw_text(root, name, x=x + room, y=y, fill=style["labelColor"], font_size=size)
        x += length
        wide = max(wide, x)
    return (wide, y + 4) if entries else (wide, high)


def _swatch(root: Element, x: float, y: float, size: float, entry: dict[str, Any]) -> None:
    marks, colour = entry["marks"], entry["colour"]
    middle = x + 6
    if "line" in marks:
        middle = x + 12
        dash = entry["dash"]
        element(
            root, "line", x1=x, x2=x + 24, y1=y, y2=y, stroke=colour, stroke_width=2,
            stroke_dasharray=dash,
        )  # fmt: skip
    shape = next((mark for mark in marks if mark not in {"line", "bar", "point"}), "")
    if not shape:
        shape = "square" if "bar" in marks else "circle" if "point" in marks else ""
    if shape:
        symbol(root, shape, middle, y, size, fill=colour)
