# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys of a JSON document, to compare with the page that describes it."""

from __future__ import annotations

from typing import Any


def keys(value: Any) -> set[str]:
    """Every key at any depth."""
    if isinstance(value, list):
        return set().union(*map(keys, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    return set(value) | set().union(*map(keys, value.values())) if value else set()
