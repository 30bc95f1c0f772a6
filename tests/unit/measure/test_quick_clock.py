# SPDX-License-Identifier: GPL-2.0-or-later
"""quick_clock.so: perftest's fit of its clock to the time of day, without its spins."""

from __future__ import annotations

import ctypes
import subprocess
import time
from pathlib import Path
from statistics import median

import pytest

from fake_testbed import FakeTestbed
from rocelab.measure import quick_clock, runner
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.record.folder import RunFolder

_SOURCE = Path(__file__).parents[3] / "tools/perftest/quick_clock.c"
_MEASUREMENTS, _FIRST_US, _STEP_US = 200, 100, 10
"""Of sample_get_cpu_mhz() in perftest's src/get_clock.c: MEASUREMENTS, USECSTART, USECSTEP."""
_ADDED_US = 3000
PLAN = plan_file.from_toml(
    '[plan]\nname = "p"\nrepetitions = 1\ntransports = ["rxe-v2"]\nprobes = []\n'
    '[[benchmark]]\ntool = "perftest"\ntest = "send_bw"\nsizes = [64]\niterations = 1000\n',
    "p.toml",
)


class _TimeVal(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("us", ctypes.c_long))


def test_each_pair_of_calls_is_one_measurement(tmp_path: Path) -> None:
    """It has waited for long enough by its own account, and what it has waited is true."""
    built = tmp_path / "quick_clock.so"
    subprocess.run(["make", "-s", "-C", _SOURCE.parent, f"O={tmp_path}"], check=True)
    library = ctypes.CDLL(str(built))

    def now_us() -> int:
        now = _TimeVal()
        assert library.gettimeofday(ctypes.byref(now), None) == 0
        return int(now.seconds) * 1_000_000 + int(now.us)

    too_long, waited = [], set()
    for number in range(_MEASUREMENTS):
        began = time.monotonic_ns()
        first, second = now_us(), now_us()
        real_us = (time.monotonic_ns() - began) / 1e3
        assert second - first >= _FIRST_US + number * _STEP_US
        wanted = number * 7 % 41
        assert second - first - _ADDED_US >= wanted
        too_long.append(real_us - (second - first - _ADDED_US))
        waited.add(wanted)
    assert waited == set(range(41))
    # what Python itself takes, and what rounding to microseconds may give
    assert -2 < median(too_long) < 50


@pytest.mark.parametrize(
    ("accelerator", "is_quick"),
    [("icount", True), ("lockstep", True), ("kvm", False), ("native", False), ("tcg", False)],
)
def test_only_where_instructions_are_counted(
    accelerator: str, is_quick: bool, tmp_path: Path
) -> None:
    """Client and server have it, and cell.json says so."""
    bed = FakeTestbed(accelerator=accelerator)
    outcome = runner.run(PLAN, bed, tmp_path)
    assert outcome.ok == 1
    variable = "LD_PRELOAD=/usr/local/bin/quick_clock.so"
    assert all((variable in argv) == is_quick for argv in bed.clients)
    servers = [process.argv for process in bed.started if "ib_send_bw" in process.argv]
    assert servers
    assert all((variable in argv) == is_quick for argv in servers)
    (step,) = RunFolder(outcome.path).record("perftest-send_bw.rxe-v2.r01")["steps"]  # type: ignore[index]
    assert step.get("environment") == ([variable] if is_quick else None)


def test_only_tools_that_spin() -> None:
    assert [name for name, tool in TOOLS.items() if quick_clock.environment(tool, "icount")] == [
        "perftest"
    ]
