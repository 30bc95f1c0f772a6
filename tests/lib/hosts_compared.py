# SPDX-License-Identifier: GPL-2.0-or-later
"""For tests of `rocelab ab --inventory`: a short plan, and what exchanging a driver touches."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab.testbed.node import Node

PLAN = """
[plan]
name = "ab-hosts"
repetitions = 1
seed = 1
transports = ["rxe-v2"]
probes = ["rxestat"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64]
iterations = 60
qp_timeout = 18
events = true
"""
_STATE = r"""
modinfo -n rdma_rxe; sha256sum "$(modinfo -n rdma_rxe)"
cat /sys/module/rdma_rxe/srcversion
find /sys/module/rdma_rxe/parameters -type f -perm -200 | sort | xargs grep -H ''
rdma link; sysctl net.core.rmem_default
find /sys/class/infiniband/*/ports/1/gid_attrs/types -type f | xargs grep -hs ''
find /tmp /run -maxdepth 1 -name 'rocelab-*'
"""


def state(nodes: Sequence[Node]) -> list[str]:
    """Module, parameters, devices, GIDs, a sysctl and our temporary files, of each node."""
    return [node.run(["sh", "-c", _STATE]).stdout for node in nodes]
