# SPDX-License-Identifier: GPL-2.0-or-later
"""Act on several nodes in parallel: a command on an emulated node is slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def at_once(act: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Call `act` on all items in parallel; return the results in order or raise the first error."""
    with ThreadPoolExecutor(max_workers=max(len(items), 1)) as pool:
        return list(pool.map(act, items))
