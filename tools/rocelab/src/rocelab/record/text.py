# SPDX-License-Identifier: GPL-2.0-or-later
"""Clean text that a stranger may have written, before anybody sees it."""

from __future__ import annotations

import re

_LONGEST = 2000
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_BREAK = re.compile(r"\r?\n")


def one_line(text: str, *, longest: int = _LONGEST) -> str:
    """Put text on one line, and replace what neither XML 1.0 nor an eye can take.

    That is controls, surrogates and marks of direction. Text longer than anyone reads is cut: a
    page, and above all a chart, has only so much room.
    """
    if len(text) > longest:
        text = f"{text[:longest]}\N{HORIZONTAL ELLIPSIS}"
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", _BREAK.sub(" ", text))
