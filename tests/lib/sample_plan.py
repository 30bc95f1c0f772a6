# SPDX-License-Identifier: GPL-2.0-or-later
"""A small plan over all transports of Soft RoCE and TCP, for any testbed."""

from __future__ import annotations


def three_transports(name: str, testbed: str) -> str:
    """Its text; `testbed`: the lines of its table."""
    return f"""
[plan]
name = "{name}"
repetitions = 1
transports = ["rxe-v2", "rxe-v1"]
[testbed]
{testbed}
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64]
iterations = 60
qp_timeout = 18
[[benchmark]]
tool = "qperf"
test = "tcp_bw"
sizes = [4096]
transports = ["tcp"]
"""
