# SPDX-License-Identifier: GPL-2.0-or-later
"""The connections that a verdict is about: those that are listed, and others that lost time."""

from __future__ import annotations

from typing import Any


def all_connections(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the connections of an analysis, also those beyond the list's limit."""
    more = result["unlisted"]["connections"] if "unlisted" in result else []
    return [*result["connections"], *more]
