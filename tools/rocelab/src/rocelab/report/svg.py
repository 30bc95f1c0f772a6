# SPDX-License-Identifier: GPL-2.0-or-later
"""Render a Vega-Lite chart as SVG: as a file for a paper, or as a part of the HTML page.

The chart is drawn when the page is made, so a reader's browser runs no script. Colours are
plain attributes that the page's style sheet replaces on a dark background. The description of a
mark is kept as its `<title>`, which browsers show on hover.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from xml.etree import ElementTree

from rocelab import units
from rocelab.report import vegalite
from rocelab.report.charts import Spec

_SVG = "http://www.w3.org/2000/svg"
_TEXT = f"{{{_SVG}}}text"
_XLINK = "http://www.w3.org/1999/xlink"
_MARKS = {"point", "bar", "rule"}
"""Vega's `aria-roledescription` of marks that carry our descriptions."""
_DROPPED = ("role", "aria-label", "aria-roledescription", "aria-hidden", "pointer-events", "class")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")

ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _XLINK)


def draw(chart: Spec) -> str:
    """Return the chart as SVG."""
    # Arial has no narrow space; one from another font would change the layout
    text = json.dumps(chart, ensure_ascii=False).replace(units.NARROW_SPACE, units.SPACE)
    return vegalite.draw(json.loads(text))


def for_file(svg: str, *, title: str, description: str) -> str:
    """Return `svg` as a standalone document with a title and a description."""
    root = _tidy(_parse(svg), prefix="")
    root.set("role", "img")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}")
        element.text = text
        root.insert(position, element)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def as_pdf(svg: str) -> bytes:
    """Return a drawing as PDF: vectors and text, one page of its size."""
    import vl_convert  # of which this uses no browser engine

    data: bytes = vl_convert.svg_to_pdf(svg)
    return data


def width(svg: str) -> float:
    """Return the width of `svg` in pixels."""
    return float(_parse(svg).attrib["width"])


def for_page(
    svg: str, *, prefix: str, description: str, wide: float, owner: Callable[[str], str]
) -> str:
    """Return `svg` as an element for HTML, `wide` pixels across, so that panels are to one scale.

    `prefix` keeps its ids distinct from those of other figures. `owner` gives the class of a mark
    or text from its label. Marks can be focused, and show their label then.
    """
    root = _parse(svg)
    classes = {element: name for element in root.iter() if (name := owner(_label(element)))}
    root = _tidy(root, prefix=f"{prefix}-")
    for element, name in classes.items():
        element.set("class", name)
    for parent in list(root.iter()):
        for position, mark in enumerate(list(parent)):
            if mark.find(f"{{{_SVG}}}title") is not None:
                parent[position] = _focusable(mark)
    root.set("width", f"{wide:g}")
    root.set("viewBox", f"0 0 {wide:g} {root.attrib['height']}")
    root.set("role", "img")
    root.set("aria-label", description)
    return ElementTree.tostring(root, encoding="unicode")


def _label(element: ElementTree.Element) -> str:
    """What a mark or a text says, with the spaces that figures are written with."""
    return element.get("aria-label") or "".join(element.itertext() if element.tag == _TEXT else ())


def _focusable(mark: ElementTree.Element) -> ElementTree.Element:
    """Wrap a mark with a text that shows while it has the keyboard's focus."""
    title = mark.find(f"{{{_SVG}}}title")
    label = "" if title is None else title.text or ""
    group = ElementTree.Element(f"{{{_SVG}}}g", {"class": "v", "tabindex": "0"})
    tip = ElementTree.Element(_TEXT, {"class": "tip", "y": "-8"})
    tip.text = label
    group.extend((mark, tip))
    return group


def _parse(text: str) -> ElementTree.Element:
    # `vegalite` has just written it: no DTD, no entities, no untrusted text
    return ElementTree.fromstring(text)  # noqa: S314


def _tidy(root: ElementTree.Element, *, prefix: str) -> ElementTree.Element:
    for element in root.iter():
        _name_mark(element)
        for attribute in _DROPPED:
            element.attrib.pop(attribute, None)
        if element.get("opacity") == "1":
            del element.attrib["opacity"]
        if "id" in element.attrib:
            element.set("id", prefix + element.attrib["id"])
        for attribute, value in element.attrib.items():
            element.set(attribute, _REFERENCE.sub(rf"url(#{prefix}\1)", value))
    return root


def _name_mark(element: ElementTree.Element) -> None:
    label = element.get("aria-label")
    if label and element.get("aria-roledescription") in _MARKS:
        title = ElementTree.SubElement(element, f"{{{_SVG}}}title")
        title.text = label
