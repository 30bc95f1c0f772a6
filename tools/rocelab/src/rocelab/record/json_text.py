# SPDX-License-Identifier: GPL-2.0-or-later
"""Parse JSON that a stranger may have written."""

from __future__ import annotations

import json
from typing import Any

_DEEPEST = 64
"""Levels of nesting; what rocelab and its probes write has ten at most."""


def parse(content: bytes | str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError when it is none, or nested too deeply."""
    try:
        found = json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return found
    raise ValueError("it is nested too deeply")
