# SPDX-License-Identifier: GPL-2.0-or-later
"""One chart of layers: its scales, axes and marks. It keeps the room that it takes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rocelab.report.vegalite import text
from rocelab.report.vegalite.scales import Band, Pixels, Scale, band, continuous
from rocelab.report.vegalite.shapes import Element, element, short, symbol
from rocelab.report.vegalite.shapes import text as draw_text

Row = dict[str, Any]
_LABEL_LIMIT = 180
_ENTRY = re.compile(r"'(-?\d+)':'([^']*)'")
"""A value and its label in the expressions of `charts.size_axis`."""
_DEFAULT_COLOUR = "#4c78a8"
_PIXELS_PER_TICK = 40
_ABOVE, _BELOW = 0.35, 0.76
"""Of a font's size: from the middle, and from the top of a text, to its base line."""


@dataclass
class Room:
    """Pixels that a chart takes around its plot."""

    left: float = 0
    right: float = 0
    top: float = 0
    bottom: float = 0


@dataclass(frozen=True)
class Layer:
    """One layer: rows, how they are marked, and what stands for what."""

    mark: Row
    encoding: dict[str, Row]
    rows: Sequence[Row]

    def value(self, channel: str, row: Row, default: Any = None) -> Any:  # noqa: ANN401 - data
        """What a row has for a channel, by its scale of names if it has one."""
        coded = self.encoding.get(channel)
        if coded is None:
            return default
        value = coded["value"] if "value" in coded else row[coded["field"]]
        scale = coded.get("scale")
        if scale and "range" in scale:
            names = scale["domain"]
            return scale["range"][names.index(value) % len(scale["range"])]
        return value


@dataclass
class Chart:
    """A chart that can be drawn, with the legend's entries that it has."""

    spec: Row
    config: Row
    datasets: dict[str, list[Row]]
    room: Room = field(default_factory=Room)

    def __post_init__(self) -> None:
        """Make the scales."""
        self.width, self.height = float(self.spec["width"]), float(self.spec["height"])
        self.layers = []
        for layer in self.spec["layer"]:
            mark = layer["mark"]
            mark = {"type": mark} if isinstance(mark, str) else mark
            rows = self.datasets[layer["data"]["name"]]
            self.layers.append(Layer(mark, layer["encoding"], rows))
        self.x, self.y = self._scale("x"), self._scale("y")

    def _scale(self, axis: str) -> Scale:
        coded = [
            (layer, layer.encoding[axis])
            for layer in self.layers
            if "field" in layer.encoding.get(axis, {}) and layer.encoding[axis].get("scale", 1)
        ]
        if not coded:
            return Pixels()
        asked: Row = next((one["scale"] for _, one in coded if one.get("scale")), {})
        if coded[0][1]["type"] in {"nominal", "ordinal"}:
            names = coded[0][1].get("sort") or [
                row[coded[0][1]["field"]] for row in coded[0][0].rows
            ]
            return band(asked, list(dict.fromkeys(names)), self._length(axis))
        values = [
            float(row[layer.encoding[channel]["field"]])
            for layer, _ in coded
            for channel in (axis, f"{axis}2")
            if channel in layer.encoding
            for row in layer.rows
        ]
        pixels = (0.0, self.width) if axis == "x" else (self.height, 0.0)
        return continuous(asked, values, pixels)

    def _length(self, axis: str) -> float:
        return self.width if axis == "x" else self.height

    def _axis(self, axis: str) -> Row | None:
        """The axis' settings with its title; None: there is none."""
        for layer in self.layers:
            coded = layer.encoding.get(axis, {})
            if "field" in coded and coded.get("scale", 1) is not None:
                if coded.get("axis", {}) is None:
                    return None
                settings: Row = {**self.config["axis"], **self.config[f"axis{axis.upper()}"]}
                return {**settings, "title": coded.get("title"), **coded.get("axis", {})}
        return None

    def draw(self, group: Element) -> None:
        """Draw axes and marks into a group whose origin is the plot's corner."""
        for axis in ("y", "x"):  # the line of the lower axis covers the grid
            if (settings := self._axis(axis)) is not None:
                self._draw_axis(group, axis, settings)
        for layer in self.layers:
            getattr(self, f"_draw_{layer.mark['type']}")(group, layer)

    # axes

    def _ticks(self, axis: str, settings: Row) -> list[tuple[float, str]]:
        scale = self.x if axis == "x" else self.y
        if isinstance(scale, Band):
            limit = settings.get("labelLimit", _LABEL_LIMIT)
            return [
                (scale(name) + scale.band / 2, text.shorten(name, settings["labelFontSize"], limit))
                for name in scale.names
            ]
        few = -(-self._length(axis) // _PIXELS_PER_TICK)
        values, step = scale.ticks(settings.get("tickCount", int(few)))
        values = settings.get("values", values)
        if expression := settings.get("labelExpr"):
            names = dict(_ENTRY.findall(expression))
            return [(scale(value), names.get(str(value), "")) for value in values]
        form = settings.get("format", "" if step else ",~g")
        return [(scale(value), text.number(value, form, step)) for value in values]

    def _draw_axis(self, group: Element, axis: str, settings: Row) -> None:
        level = axis == "x"
        ticks = self._ticks(axis, settings)
        named = isinstance(self.x if level else self.y, Band)
        if settings.get("grid", not named):
            for at, _ in ticks:
                ends = (at, at, 0.0, self.height) if level else (0.0, self.width, at, at)
                _line(group, ends, stroke=settings["gridColor"])
        if level and settings.get("domain", True):
            _line(group, (0, self.width, self.height, self.height), stroke=settings["domainColor"])
        if level and settings.get("ticks", True):
            for at, _ in ticks:
                below = self.height + float(settings["tickSize"])
                _line(group, (at, at, self.height, below), stroke=settings["tickColor"])
        size = settings["labelFontSize"]
        style = {"fill": settings["labelColor"], "font_size": size}
        if level:
            top = self.height + settings["tickSize"] + 3
            until = -1e9
            for at, label in ticks:
                half = text.width(label, size) / 2
                if label and at - half >= until:
                    until = at + half + settings.get("labelSeparation", 0)
                    draw_text(
                        group, label, x=at, y=top + size * _BELOW, text_anchor="middle", **style
                    )
                    self.room.left = max(self.room.left, half - at)
                    self.room.right = max(self.room.right, at + half - self.width)
            edge = top + size - self.height
        else:
            pad = settings.get("labelPadding", 4)
            for at, label in ticks:
                draw_text(group, label, x=-pad, y=at + size * _ABOVE, text_anchor="end", **style)
            widest = max((text.width(label, size) for _, label in ticks), default=0)
            edge = pad + widest * text.WIDER
        edge = self._draw_title(group, level, edge, settings)
        side = "bottom" if level else "left"
        setattr(self.room, side, max(getattr(self.room, side), edge))

    def _draw_title(self, group: Element, level: bool, edge: float, settings: Row) -> float:
        """Draw an axis' title `edge` pixels away; return where it ends."""
        if not settings["title"]:
            return edge
        size = settings["titleFontSize"]
        edge += settings["titlePadding"]
        x, y = (self.width / 2, self.height + edge + size * _BELOW)
        turn = None
        if not level:
            x, y = -edge - size * 0.25, self.height / 2
            turn = f"rotate(-90,{short(x)},{short(y)})"
        draw_text(
            group,
            settings["title"],
            x=x,
            y=y,
            text_anchor="middle",
            transform=turn,
            fill=settings["titleColor"],
            font_size=size,
            font_weight=str(settings["titleFontWeight"]),
        )
        return edge + float(size)

    # marks

    def _place(self, layer: Layer, channel: str, row: Row) -> float:
        """The pixel of a row in a channel; in a band, its middle."""
        coded = layer.encoding[channel]
        if "value" in coded:
            return float(coded["value"])
        scale = self.x if channel[0] == "x" else self.y
        value = row[coded["field"]]
        axis = layer.encoding[channel[0]]
        if axis.get("scale", 1) is None:
            return float(value)
        return scale(value) + scale.band / 2

    def _draw_bar(self, group: Element, layer: Layer) -> None:
        rows = list(layer.rows)
        if "order" in layer.encoding:
            rows.sort(key=lambda row: row[layer.encoding["order"]["field"]])
        ends: dict[str, float] = defaultdict(float)
        for row in rows:
            if "x2" in layer.encoding:
                left, right = (self._place(layer, channel, row) for channel in ("x", "x2"))
            else:
                value = float(row[layer.encoding["x"]["field"]])
                stacked = layer.encoding["x"].get("stack")
                before = ends[row[layer.encoding["y"]["field"]]] if stacked else 0.0
                ends[row[layer.encoding["y"]["field"]]] = before + value
                left, right = self.x(before), self.x(before + value)
            if "y2" in layer.encoding:
                top, bottom = (self._place(layer, channel, row) for channel in ("y", "y2"))
            else:
                middle, high = self._place(layer, "y", row), layer.mark.get("height", self.y.band)
                top, bottom = middle - high / 2, middle + high / 2
            shape = element(
                group,
                "rect",
                x=min(left, right),
                y=top,
                width=abs(right - left),
                height=bottom - top,
                fill=layer.value("color", row, _DEFAULT_COLOUR),
                stroke=layer.mark.get("stroke"),
                stroke_width=layer.mark.get("strokeWidth"),
            )
            _describe(shape, layer, row, "bar")

    def _draw_rule(self, group: Element, layer: Layer) -> None:
        for row in layer.rows:
            x = (0.0, self.width)
            if "x" in layer.encoding:
                begin = self._place(layer, "x", row)
                x = (begin, self._place(layer, "x2", row) if "x2" in layer.encoding else begin)
            y = (0.0, self.height)
            if "y" in layer.encoding:
                begin = self._place(layer, "y", row)
                y = (begin, self._place(layer, "y2", row) if "y2" in layer.encoding else begin)
            shape = _line(
                group,
                (*x, *y),
                stroke=layer.value("color", row, layer.mark.get("color", "#000")),
                stroke_width=layer.mark.get("strokeWidth"),
                stroke_dasharray=_dashes(layer.mark.get("strokeDash")),
            )
            _describe(shape, layer, row, "rule")

    def _draw_line(self, group: Element, layer: Layer) -> None:
        apart = [
            layer.encoding[channel]["field"]
            for channel in ("color", "detail")
            if channel in layer.encoding
        ]
        lines: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in layer.rows:
            lines[tuple(row[name] for name in apart)].append(row)
        steps = layer.mark.get("interpolate") == "step-after"
        for rows in lines.values():
            points = [(self._place(layer, "x", row), self._place(layer, "y", row)) for row in rows]
            points.sort(key=lambda point: point[0])
            path = f"M{short(points[0][0])},{short(points[0][1])}"
            for x, y in points[1:]:
                path += f"H{short(x)}V{short(y)}" if steps else f"L{short(x)},{short(y)}"
            element(
                group,
                "path",
                d=path,
                fill="none",
                stroke=layer.value("color", rows[0], layer.mark.get("color", _DEFAULT_COLOUR)),
                stroke_width=layer.mark.get("strokeWidth"),
                stroke_dasharray=_dashes(layer.value("strokeDash", rows[0])),
            )

    def _draw_circle(self, group: Element, layer: Layer) -> None:
        self._draw_point(group, layer)

    def _draw_point(self, group: Element, layer: Layer) -> None:
        filled = layer.mark.get("filled", layer.mark["type"] == "circle")
        for row in layer.rows:
            colour = layer.value("color", row, layer.mark.get("color", _DEFAULT_COLOUR))
            shape = symbol(
                group,
                layer.value("shape", row, layer.mark.get("shape", "circle")),
                self._place(layer, "x", row),
                self._place(layer, "y", row),
                layer.mark["size"],
                fill=colour if filled else "none",
                stroke=None if filled else colour,
                stroke_width=None if filled else layer.mark.get("strokeWidth"),
                opacity=layer.mark.get("opacity"),
            )
            _describe(shape, layer, row, "point")

    def _draw_text(self, group: Element, layer: Layer) -> None:
        anchor = {"left": "start", "right": "end"}.get(layer.mark.get("align", ""), "middle")
        size = layer.mark["fontSize"]
        for row in layer.rows:
            x, y = self._place(layer, "x", row), self._place(layer, "y", row)
            content = str(layer.value("text", row))
            shape = draw_text(
                group,
                content,
                x=x,
                y=y + size * _ABOVE,
                text_anchor=anchor if anchor != "start" else None,
                fill=layer.value("color", row, layer.mark.get("color", "#000")),
                font_size=size,
            )
            _describe(shape, layer, row, "text")
            self.room.right = max(self.room.right, x - self.width if anchor == "end" else 0)
            self.room.top = max(self.room.top, size / 2 + 2 - y)

    def entries(self) -> Iterator[tuple[str, str, str, str | None]]:
        """The legend's: name, colour, `bar`, `line` or the symbol of points, and dashes."""
        for layer in self.layers:
            scale = layer.encoding.get("color", {}).get("scale") or {}
            kind = layer.mark["type"]
            for at, name in enumerate(scale.get("domain", ())):
                shapes = (layer.encoding.get("shape") or {}).get("scale", {}).get("range")
                dashes = (layer.encoding.get("strokeDash") or {}).get("scale", {}).get("range")
                mark = shapes[at % len(shapes)] if shapes else kind
                if not shapes and kind in {"circle", "rule"}:
                    continue  # the points and lines of the same names say it
                dash = _dashes(dashes[at]) if dashes else None
                yield name, scale["range"][at % len(scale["range"])], mark, dash


def _dashes(pattern: Sequence[float] | None) -> str | None:
    if not pattern or list(pattern) == [1, 0]:
        return None
    return ",".join(map(short, pattern))


def _line(
    group: Element, ends: tuple[float, float, float, float], **attributes: str | float | None
) -> Element:
    x1, x2, y1, y2 = ends
    return element(group, "line", x1=x1, x2=x2, y1=y1, y2=y2, **attributes)


def _describe(shape: Element, layer: Layer, row: Row, kind: str) -> None:
    """Note what a mark says, for readers and for `report.svg`."""
    if label := layer.value("description", row):
        shape.set("aria-label", str(label))
        shape.set("aria-roledescription", kind)
