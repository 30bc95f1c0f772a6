# SPDX-License-Identifier: GPL-2.0-or-later
"""Act on several nodes at the same time: a command on an emulated node takes its while."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def at_once(act: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Results of `act` on each item, in the order of the items; the first exception is raised."""
    with ThreadPoolExecutor(max_workers=max(len(items), 1)) as pool:
        return list(pool.map(act, items))
