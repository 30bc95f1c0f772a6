# SPDX-License-Identifier: GPL-2.0-or-later
"""Tools with a client and a server, by name."""

from __future__ import annotations

from rocelab.plans.benchmarks.command import COMMAND
from rocelab.plans.benchmarks.fi_pingpong import FI_PINGPONG
from rocelab.plans.benchmarks.file_copy import FTP, RCOPY
from rocelab.plans.benchmarks.fio import FIO
from rocelab.plans.benchmarks.iperf3 import IPERF3
from rocelab.plans.benchmarks.perftest import PERFTEST
from rocelab.plans.benchmarks.pingpong import PINGPONG
from rocelab.plans.benchmarks.qperf import QPERF
from rocelab.plans.benchmarks.rdmacm_utils import RPING, RSTREAM, UDADDY
from rocelab.plans.benchmarks.tool import Tool
from rocelab.plans.benchmarks.ucx_perftest import UCX_PERFTEST

TOOLS: dict[str, Tool] = {
    "perftest": PERFTEST,
    "pingpong": PINGPONG,
    "qperf": QPERF,
    "iperf3": IPERF3,
    "rcopy": RCOPY,
    "ftp": FTP,
    "fio": FIO,
    "ucx_perftest": UCX_PERFTEST,
    "rping": RPING,
    "udaddy": UDADDY,
    "rstream": RSTREAM,
    "fi_pingpong": FI_PINGPONG,
    "command": COMMAND,
}
