# SPDX-License-Identifier: GPL-2.0-or-later
"""Act on several nodes in parallel: a command on an emulated node is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from rocelab.testbed.node import awake

_T = TypeVar("_T")
_R = TypeVar("_R")


def at_once(act: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Call `act` on all items in parallel; return the results in order or raise the first error.

    A signal ends them all: a node that does not answer must not hold up its user.
    """
    interruption = awake.Interruption()

    def one(item: _T) -> _R:
        with interruption.heeded():
            return act(item)

    with ThreadPoolExecutor(max_workers=max(len(items), 1)) as pool:
        try:
            return list(pool.map(one, items))
        except KeyboardInterrupt:
            interruption.come()
            raise


@contextmanager
def all_of(contexts: Sequence[AbstractContextManager[_R]]) -> Iterator[list[_R]]:
    """Enter all contexts in parallel, yield what they yield, and leave them in parallel.

    Those that were entered are left even if one cannot be. Raises the first error.
    """
    entered: list[AbstractContextManager[_R]] = []

    def enter(context: AbstractContextManager[_R]) -> _R:
        yielded = context.__enter__()
        entered.append(context)
        return yielded

    try:
        yield at_once(enter, contexts)
    except BaseException as error:
        why = (type(error), error, error.__traceback__)
        at_once(lambda each: each.__exit__(*why), entered)
        raise
    at_once(lambda each: each.__exit__(None, None, None), entered)
