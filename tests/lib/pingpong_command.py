# SPDX-License-Identifier: GPL-2.0-or-later
"""A benchmark of a plan that is the user's own command: rdma-core's ibv_rc_pingpong."""

from __future__ import annotations

BENCHMARK = """
[[benchmark]]
tool = "command"
test = "latency"
[benchmark.command]
server = ["ibv_rc_pingpong", "-d{device}", "-g{gid}", "-n60", "-p{tcp_port}"]
client = ["ibv_rc_pingpong", "-d{device}", "-g{gid}", "-n60", "-p{tcp_port}", "{peer}"]
regex = '= (?P<value>[0-9.]+) usec/iter'
unit = "us"
"""
