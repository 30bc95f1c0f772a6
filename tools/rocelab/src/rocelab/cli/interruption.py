# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals that end this process: they raise KeyboardInterrupt, wherever the main thread is."""

from __future__ import annotations

import contextlib
import signal
import sys
from types import FrameType

from rocelab.errors import RocelabError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KEY = "Ctrl-C"
_SOON = 0.005
"""Seconds until a callback that cannot raise is over."""
_PATIENCE = 0.5
"""Seconds to wait for what must end: polars may sort millions of rows, a pipe may be full."""
_STREAMS = "rocelab.terminal.streams"
_came: list[str] = []
"""Names of signals that ended this process; Python forgets which it was."""


def install() -> None:
    """Clean up on SIGTERM and SIGHUP as on Ctrl-C; nohup(1) has SIGHUP ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle_key)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle_termination)
    sys.unraisablehook = _not_raised


def ignore() -> None:
    """Let nothing interrupt what is left: Python takes its handlers away before it ends."""
    ignored = False
    while not ignored:
        with contextlib.suppress(KeyboardInterrupt):
            for number in (*_SIGNALS, signal.SIGALRM):
                signal.signal(number, signal.SIG_IGN)
            ignored = True
    # Python ends by SIGINT if KeyboardInterrupt ended an exec() of text, such as dataclass has,
    # though it was caught later; the next exec() takes that back (run_eval_code_obj, pythonrun.c)
    exec("")  # noqa: S102 - there is no text


def has_come() -> bool:
    """Say whether a signal has come that `what` has not told of."""
    return bool(_came)


def name() -> str:
    """Return the name of the last signal, `Ctrl-C` for SIGINT."""
    return _came[-1] if _came else _KEY


def what() -> str:
    """Return `name`, and forget the signal."""
    return _came.pop() if _came else _KEY


def is_behind(error: BaseException) -> bool:
    """Say whether an error is what a library, or who called it, made of KeyboardInterrupt."""
    if not _came:
        return False
    if not isinstance(error, RocelabError):
        return True
    before: BaseException | None = error
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__cause__ or before.__context__
    return before is not None


def _handle_termination(signum: int, frame: FrameType | None) -> None:
    # cleaning up is not interrupted by the same signal again
    signal.signal(signum, signal.SIG_IGN)
    _interrupt(signal.Signals(signum).name, frame)


def _handle_key(signum: int, frame: FrameType | None) -> None:
    """Interrupt on Ctrl-C; a second one interrupts the cleaning up."""
    del signum
    _interrupt(_KEY, frame)


def _interrupt(name: str, frame: FrameType | None, waited: float = 0.0) -> None:
    if waited < _PATIENCE and _must_end(frame):
        _later(name, waited + _SOON)
        return
    _came.append(name)
    raise KeyboardInterrupt(*(() if name == _KEY else (name,)))


def _later(name: str, waited: float) -> None:
    signal.signal(signal.SIGALRM, lambda _, frame: _interrupt(name, frame, waited))
    signal.setitimer(signal.ITIMER_REAL, _SOON)


def _must_end(frame: FrameType | None) -> bool:
    """Say whether polars runs, or output is being written.

    Where polars' Rust calls Python, an exception is a loud panic; and what has just been written
    would be written again, because its buffer was not told.
    """
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("polars.") or name == _STREAMS:
            return True
        frame = frame.f_back
    return False


def _not_raised(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt again: it came in a callback, such as of a weak reference, and was lost."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _later(what(), 0.0)
    else:
        sys.__unraisablehook__(unraisable)
