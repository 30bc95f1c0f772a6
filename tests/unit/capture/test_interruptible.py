# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading notices a signal at each place where Python looks for one."""

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


def test_a_signal_is_noticed_at_each_place() -> None:
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


@pytest.mark.parametrize(("can_stop", "steps"), [(True, _STEPS), (False, 1)])
def test_which_signal_ends_it(can_stop: bool, steps: int) -> None:
    """The second one; the first one, if nothing can be stopped."""
    reading = _Reading()

    def step() -> bool:
        reading.step()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interruptible.run_steps(step, reading.stop if can_stop else None)
    assert (reading.steps, reading.stops) == (steps, int(can_stop))
