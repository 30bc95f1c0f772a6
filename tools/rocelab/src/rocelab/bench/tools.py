# SPDX-License-Identifier: GPL-2.0-or-later
"""The tools by name."""

from __future__ import annotations

from rocelab.bench.iperf3 import IPERF3
from rocelab.bench.perftest import PERFTEST
from rocelab.bench.qperf import QPERF
from rocelab.bench.tool import Tool
from rocelab.bench.transfer import FTP, RCOPY

TOOLS: dict[str, Tool] = {
    "perftest": PERFTEST,
    "qperf": QPERF,
    "iperf3": IPERF3,
    "rcopy": RCOPY,
    "ftp": FTP,
}
