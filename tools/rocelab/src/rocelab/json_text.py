# SPDX-License-Identifier: GPL-2.0-or-later
"""Parse JSON that a stranger may have written (`rocelab.limits`)."""

from __future__ import annotations

import json
import re
from typing import Any

from rocelab import limits

_LONG_NUMBER = re.compile(r"\d{20}")
_DIGITS = 20
"""Of a whole number: a counter has at most 64 bits."""


def parse(content: bytes | str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError when it is none, or beyond a limit."""
    document = parse_any(content)
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    return document


def parse_any(content: bytes | str) -> Any:  # noqa: ANN401 -- as json.loads
    """Parse JSON. Raises ValueError when it is none, or beyond a limit.

    Whole numbers of more digits than a counter has become floating-point numbers.
    """
    text = content if isinstance(content, str) else content.decode("utf-8")
    if len(text) > limits.MAX_RAW_BYTES:
        raise ValueError("it is too large")
    if sum(map(text.count, ",[{")) > limits.MAX_JSON_VALUES:
        raise ValueError("it has too many values")
    try:
        document = json.loads(text, parse_int=_whole if _LONG_NUMBER.search(text) else None)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    level: list[Any] = [document]
    for _ in range(limits.MAX_JSON_DEPTH):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return document
    raise ValueError("it is nested too deeply")


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)
