# SPDX-License-Identifier: GPL-2.0-or-later
"""Act on several nodes in parallel: a command on an emulated node is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import ParamSpec, TypeVar

from rocelab.testbed.node import awake

_T = TypeVar("_T")
_R = TypeVar("_R")
_P = ParamSpec("_P")


class Threads:
    """Calls, each in another thread; a signal ends them all."""

    def __init__(self, pool: ThreadPoolExecutor, interruption: awake.Interruption) -> None:
        self._pool = pool
        self._interruption = interruption

    def begin(
        self, act: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Callable[[], _R]:
        """Begin a call; return what waits for its result or raises its error."""

        def one() -> _R:
            with self._interruption.heed():
                return act(*args, **kwargs)

        future = self._pool.submit(one)
        return lambda: _result(future)


def _result(future: Future[_R]) -> _R:
    # a signal that comes just before a wait begins is seen when the wait ends
    while not wait([future], awake.SLICE).done:
        pass
    return future.result()


@contextmanager
def threads(most: int) -> Iterator[Threads]:
    """Up to `most` calls at a time; leaving waits for them.

    A signal ends them all: a node that does not answer must not hold up its user.
    """
    interruption = awake.Interruption()
    with ThreadPoolExecutor(max_workers=most) as pool:
        try:
            yield Threads(pool, interruption)
        except KeyboardInterrupt:
            interruption.come()
            raise


def at_once(act: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Call `act` on all items in parallel; return the results in order or raise the first error."""
    with threads(max(len(items), 1)) as calls:
        results = [calls.begin(act, item) for item in items]
        return [result() for result in results]


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
