# SPDX-License-Identifier: GPL-2.0-or-later
"""Time limits do not count the time for which a process was stopped."""

from __future__ import annotations

import random
import subprocess
from types import SimpleNamespace

import pytest

from rocelab.testbed.node import awake

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("stop", "waits"), [(0.0, 6), (0.5, 6), (60.0, 5)])
def test_a_stop_does_not_count(monkeypatch: pytest.MonkeyPatch, stop: float, waits: int) -> None:
    """However long it is: one second of it at most, and what was waited for anyway."""
    now = [1000.0]
    monkeypatch.setattr(awake, "time", SimpleNamespace(monotonic=lambda: now[0]))
    lengths = []
    for length in awake.slices(6):
        now[0] += length + (0 if lengths else stop)
        lengths.append(length)
    assert len(lengths) == waits
    assert sum(lengths) == pytest.approx(6 - min(stop, 1))


def test_a_limit_holds() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        awake.run(["sleep", "600"], stdin=b"", seconds=1.5)


def test_what_goes_in_and_comes_out() -> None:
    """More than a pipe holds, over several slices, and the exit status."""
    data = random.Random(1).randbytes(1 << 20)
    slow = "sleep 1.2; cat; echo error >&2; exit 3"
    done = awake.run(["sh", "-c", slow], stdin=data, seconds=30)
    assert (done.stdout, done.stderr, done.returncode) == (data, b"error\n", 3)


def test_waiting() -> None:
    with subprocess.Popen(["sleep", "1.2"], text=True) as process:
        assert awake.wait(process, 30) == 0
    with subprocess.Popen(["sleep", "60"], text=True) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            awake.wait(process, 0.2)
        process.kill()
