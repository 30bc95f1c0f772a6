# SPDX-License-Identifier: GPL-2.0-or-later
"""A signal ends reading early wherever it comes, and only there."""

from __future__ import annotations

import dis
import sys
from types import FrameType
from typing import Any

import pytest

from rocelab.capture import interruptible

_STEPS = 3
_LOOKS = ("PRECALL", "CALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
"""Beginnings of the instructions at which Python looks for signals, but for a function's first."""


class _Interrupting:
    """Raises KeyboardInterrupt as signals do: at one of the places where Python looks for them."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __enter__(self) -> _Interrupting:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != interruptible.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and _name_at(frame).startswith(_LOOKS):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._trace


def _name_at(frame: FrameType) -> str:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


class _Reading:
    def __init__(self) -> None:
        self.steps = self.stops = 0

    def step(self) -> bool:
        self.steps += 1
        return self.steps < _STEPS

    def stop(self) -> None:
        self.stops += 1
        self.steps = max(self.steps, _STEPS - 1)


def test_a_signal_at_any_instruction_is_noticed() -> None:
    moments = 0
    came = True
    while came:
        moments += 1
        reading = _Reading()
        try:
            with _Interrupting(moments) as signal:
                interrupted = interruptible.run_steps(reading.step, reading.stop)
        except KeyboardInterrupt:
            pytest.fail(f"lost at moment {moments}")
        came = signal.left == 0
        assert (interrupted, reading.stops) == (came, came), moments
        assert reading.steps >= _STEPS
    # a call and a jump for each step but the last
    assert moments > 2 * _STEPS - 1


def test_the_second_signal_ends_it() -> None:
    reading = _Reading()

    def step() -> bool:
        reading.step()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interruptible.run_steps(step, reading.stop)
    assert (reading.steps, reading.stops) == (_STEPS, 1)


def test_what_cannot_be_stopped_ends_at_once() -> None:
    reading = _Reading()

    def step() -> bool:
        reading.step()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interruptible.run_steps(step, None)
    assert reading.steps == 1
