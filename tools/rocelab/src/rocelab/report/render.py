# SPDX-License-Identifier: GPL-2.0-or-later
"""Render a `Document` as one HTML page and its figures as SVG. No network, no script, no clock.

The page's Content-Security-Policy allows only its own style sheet, by hash, so even text that
escaped the escaping could not load or run anything.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from rocelab.report import charts, palette, svg, wording
from rocelab.report.figure import Document, Figure, Legend, Panel
from rocelab.version import VERSION

_TONES = {"proven": "good", "ok": "good", "not proven": "bad", "missing": "bad"}
"""Verdicts that tables colour; the word carries the same meaning."""
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Drawing:
    """A figure with its panels drawn for the page."""

    figure: Figure
    panels: tuple[tuple[Panel, Markup], ...]
    notes: tuple[str, ...]


class _Once:
    """Notes that the page has already."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def new(self, notes: Iterable[str]) -> tuple[str, ...]:
        """Return those that the page lacks, which it has from now on."""
        fresh = tuple(dict.fromkeys(note for note in notes if note not in self._said))
        self._said.update(fresh)
        return fresh


def _with_code(text: str) -> Markup:
    """Escape a text, and set what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _owner(text: str, transports: Sequence[str]) -> str:
    """Return the class of what belongs to one transport: a row, a bar, a line; empty for others.

    A label names its transport first, in front of a comma, or last.
    """
    for position, name in enumerate(transports):
        if not text or not name:
            continue
        if text == name or text.startswith(f"{name}, ") or text.endswith(f" {name}"):
            return f"t{position}"
    return ""


def _row_owner(row: Iterable[str], transports: Sequence[str]) -> str:
    """Return the class of a table's row with a cell that is a transport."""
    return next((f"t{transports.index(cell)}" for cell in row if cell in transports), "")


def page(document: Document) -> str:
    """Return the report as self-contained HTML. The same document gives the same bytes."""
    style = _style(document.transports)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
        lstrip_blocks=True,
    )
    environment.filters["with_code"] = _with_code
    once = _Once()
    return environment.get_template("report.html.j2").render(
        document=document,
        drawings={
            section.anchor: [
                _drawing(figure, document.transports, once.new(figure.notes))
                for figure in section.figures
            ]
            for section in document.sections
        },
        owner=lambda text: _owner(text, document.transports),
        row_owner=lambda row: _row_owner(row, document.transports),
        box=_box,
        marks={name: palette.transport_style(name).colour.light for name in document.transports},
        style=Markup(style),  # noqa: S704 - our own file and palette
        style_hash=f"sha256-{digest}",
        swatch=_swatch,
        tones=_TONES,
        version=VERSION,
    )


def figure_file(figure: Figure) -> str:
    """Return a figure, all panels and the legend, as an SVG document fit for a paper."""
    chart = charts.concat(
        [panel.chart for panel in figure.panels],
        titles=[panel.title for panel in figure.panels],
        columns=figure.columns,
    )
    return svg.for_file(
        svg.draw({**chart, "config": charts.config(legend=True)}),
        title=figure.title,
        description=" ".join(
            [
                *figure.caption,
                *figure.notes,
                wording.accelerator_caption(figure.accelerator),
                *(panel.alt for panel in figure.panels),
            ]
        ),
    )


def _drawing(figure: Figure, transports: Sequence[str], notes: tuple[str, ...]) -> Drawing:
    config = charts.config(legend=False)
    texts = [svg.draw({**panel.chart, "config": config}) for panel in figure.panels]
    wide = max(map(svg.width, texts), default=0.0)
    drawn = []
    for position, (panel, text) in enumerate(zip(figure.panels, texts, strict=True)):
        part = svg.for_page(
            text,
            prefix=f"{figure.slug}-{position}",
            description=panel.alt,
            wide=wide,
            owner=lambda label: _owner(label, transports),
        )
        drawn.append((panel, Markup(part)))  # noqa: S704 - XML written by ElementTree
    return Drawing(figure, tuple(drawn), notes)


def _resource(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _style(transports: Sequence[str]) -> str:
    light = {"ink": palette.INK, "muted": palette.MUTED, "ground": palette.GROUND}
    variables = "".join(f"--{name}:{colour.light};" for name, colour in light.items())
    dark_variables = "".join(f"--{name}:{colour.dark};" for name, colour in light.items())
    dark = "".join(
        f'svg [fill="{colour.light}"]{{fill:{colour.dark}}}'
        f'svg [stroke="{colour.light}"]{{stroke:{colour.dark}}}'
        for colour in palette.all_colours()
    )
    return (
        f":root{{{variables}}}\n{_resource('style.css')}"
        f"@media screen and (prefers-color-scheme: dark){{:root{{{dark_variables}}}{dark}}}\n"
        f"{''.join(map(_toggle, range(len(transports)), transports))}"
    )


def _toggle(position: int, transport: str) -> str:
    """Return the rules that hide a transport while its box is not ticked."""
    off = f"body:has(#show-{position}:not(:checked))"
    own = palette.TRANSPORTS.get(transport)
    lines = ""
    if own is not None:  # lines and dots have the transport's colour, which nothing else has
        lines = "".join(
            f',{off} .card [{mark}="{own.colour.light}"]' for mark in ("stroke", "fill")
        )
    return (
        f"{off} :is(tr,th,td,.panel).t{position}{{display:none}}"
        f"{off} svg .t{position}{lines}{{opacity:.08}}\n"
    )


_SHAPES = {
    "circle": '<circle cx="13" cy="7" r="4"/>',
    "square": '<rect x="9" y="3" width="8" height="8"/>',
    "diamond": '<path d="M13 2l5 5-5 5-5-5z"/>',
    "cross": '<path d="M11.5 2h3v3.5H18v3h-3.5V12h-3V8.5H8v-3h3.5z"/>',
    "triangle-up": '<path d="M13 2l5 9H8z"/>',
    "triangle-down": '<path d="M13 12L8 3h10z"/>',
    "triangle-right": '<path d="M18 7l-9 5V2z"/>',
}


def _box(colour: str) -> Markup:
    return Markup(
        '<svg width="14" height="14" aria-hidden="true">'
        '<rect width="14" height="14" rx="2" fill="{}"/></svg>'
    ).format(colour)


def _swatch(entry: Legend) -> Markup:
    if entry.mark == "bar":
        return _box(entry.colour)
    style = palette.transport_style(entry.label)
    shape = Markup(_SHAPES.get(style.shape, ""))  # noqa: S704 - constants above
    return Markup(
        '<svg width="26" height="14" aria-hidden="true"><path d="M0 7h26" stroke="{}" '
        'stroke-width="2" stroke-dasharray="{}"/><g fill="{}">{}</g></svg>'
    ).format(
        entry.colour,
        "none" if style.dash == (1, 0) else " ".join(map(str, style.dash)),
        entry.colour,
        shape,
    )
