# SPDX-License-Identifier: GPL-2.0-or-later
"""Widths of texts in the figures' font, and numbers as axes write them."""

from __future__ import annotations

import math

_BY_WIDTH = {
    191: "'", 222: "ijl", 260: "|", 278: " !,./:;I[\\]ft", 333: "()-`r", 334: "{}", 355: '"',
    389: "*", 469: "^", 500: "Jcksvxyz", 556: "#$0123456789?L_abdeghnopqu",
    584: "+<=>~", 611: "FTZ", 667: "&ABEKPSVXY", 722: "CDHNRUw", 778: "GOQ", 833: "Mm",
    889: "%", 944: "W", 1015: "@",
}  # fmt: skip
_WIDTHS = {character: units for units, text in _BY_WIDTH.items() for character in text}
"""Thousandths of the font's size: Arial, and what has its metrics."""
_OTHER = 556
_SI = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
WIDER = 1.1
"""Room for the font of a browser that has none of ours."""
MINUS = "\N{MINUS SIGN}"


def width(text: str, size: float) -> float:
    """How wide a text is, in pixels."""
    return sum(_WIDTHS.get(character, _OTHER) for character in text) * size / 1000


def shorten(text: str, size: float, limit: float) -> str:
    """A text, shortened to a width."""
    if width(text, size) <= limit:
        return text
    while text and width(f"{text}…", size) > limit:
        text = text[:-1]
    return f"{text}…"


def number(value: float, form: str, step: float = 0) -> str:
    """A number as d3-format writes it: `~s`, `~g`, `,~g`, or as many decimals as `step` has."""
    sign, size = MINUS if value < 0 else "", abs(value)
    if form == "~s":
        power = min(12, max(-12, 3 * math.floor(math.log10(size) / 3))) if size else 0
        return f"{sign}{_trim_zeros(f'{size / 10.0**power:.6g}')}{_SI[power]}"
    if form.endswith("~g"):
        return sign + _trim_zeros(f"{size:,.12g}" if form[0] == "," else f"{size:.12g}")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
    return f"{sign}{size:,.{decimals}f}"


def _trim_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
