# SPDX-License-Identifier: GPL-2.0-or-later
"""A probe's JSON document in a step's folder, before anything in it is looked at."""

from __future__ import annotations

from rocelab import json_text, limits
from rocelab.conditions import lack
from rocelab.directory import Directory
from rocelab.errors import CellError
from rocelab.strict import quote


def read(step: Directory, name: str) -> object:
    """Return what the file contains. Raises CellError, or what the machine lacks."""
    try:
        text = step.read(name, limit=limits.MAX_JSON_BYTES)
    except (OSError, ValueError) as error:
        raise lack(error, f"cannot read {quote(name)}") or CellError(
            f"{quote(name)} cannot be read: {error!a:.80}"
        ) from error
    return parse(text, quote(name))


def parse(text: str | bytes, what: str) -> object:
    """Return what the text contains. Raises CellError about `what`."""
    try:
        return json_text.parse(text)
    except ValueError as error:
        raise CellError(f"{what} cannot be read: {error!a:.80}") from error
