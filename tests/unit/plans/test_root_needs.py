# SPDX-License-Identifier: GPL-2.0-or-later
"""Which plans a user without root can run on hosts."""

from __future__ import annotations

import pytest

from rocelab.plans import plan_file
from rocelab.plans.root_needs import root_needs

_PERFTEST = '[[benchmark]]\ntool = "perftest"\ntest = "send_lat"\nsizes = [64]\n'
_QPERF = '[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [64]\n'
_COPY = '[[benchmark]]\ntool = "ftp"\ntest = "put"\nsizes = [64]\n'
_SHAPED = '[testbed]\nprovider = "ssh"\n[testbed.link]\ndelay_us = 5\n'


@pytest.mark.parametrize(
    ("transports", "probes", "rest", "needs"),
    [
        ("tcp", "", _QPERF, ""),
        ("hw-v2", "", _PERFTEST, ""),
        ("ib", "rxestat", _PERFTEST, ""),
        ("tcp", "rxestat", _QPERF, ""),
        ("tcp", "rxecpu", _QPERF, "rxecpu"),
        ("rxe-v2", "rxestat", _PERFTEST, "rxe-v2 and rxestat"),
        ("tcp", "", _SHAPED + _QPERF, "the shaped link"),
        ("tcp", "", _COPY, "ftp's server"),
    ],
)
def test_what_needs_root(transports: str, probes: str, rest: str, needs: str) -> None:
    plan = plan_file.from_toml(
        f'[plan]\nname = "x"\nrepetitions = 1\ntransports = ["{transports}"]\n'
        f"probes = {[probes] if probes else []}\n{rest}",
        "x.toml",
    )
    assert root_needs(plan) == needs
