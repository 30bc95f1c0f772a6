# SPDX-License-Identifier: GPL-2.0-or-later
"""Analyse the packets of a network interface, and look at the result again and again."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rocelab.capture import analysis, interface, interruptible
from rocelab.capture.analysis import Analysis, Options
from rocelab.errors import MissingError

Show = Callable[[dict[str, Any]], None]
"""Called with what `--json` would print if the capture ended now."""


class _Timer:
    """Says once an interval that it is over, and ends a read that waits for packets then."""

    def __init__(self) -> None:
        self._due = False

    def ring(self, signum: int, frame: FrameType | None) -> None:
        del signum, frame
        self._due = True

    def due(self) -> bool:
        was, self._due = self._due, False
        return was


@contextmanager
def _timer(every_s: float) -> Iterator[_Timer]:
    timer = _Timer()
    before = signal.signal(signal.SIGALRM, timer.ring)
    signal.setitimer(signal.ITIMER_REAL, every_s, every_s)
    try:
        yield timer
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def follow(name: str, options: Options, show: Show, *, every_s: float = 1.0) -> Analysis:
    """Analyse what the interface `name` sees until Ctrl-C; `show` the result every `every_s`.

    Works in the main thread only, which alone receives signals. Raises UsageError if there is no
    such interface, MissingError if nothing can be captured from it.
    """
    plan = analysis.Plan((0,))
    names = [name]
    with interface.packets(name) as source, _timer(every_s) as timer:
        core = analysis.open_core([source.path], options, plan, rows=False)

        def step() -> bool:
            more = core.step()
            # a last look comes with the end
            if more and timer.due() and not source.is_stopped:
                show(analysis.finish_result(core.snapshot(), names, options, plan))
            return more

        interrupted = interruptible.run_steps(step, source.stop)
        why = None if interrupted else source.failure()
    if why is not None:
        raise MissingError(
            f"cannot capture from {name}",
            cause=why,
            action="Capture as root, or as a member of the group wireshark.",
        )
    core.finish()
    result = analysis.finish_result(core.result(), names, options, plan)
    return analysis.with_tables(core, result, plan, interrupted=interrupted)
