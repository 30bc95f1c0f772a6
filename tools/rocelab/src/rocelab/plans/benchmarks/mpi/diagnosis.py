# SPDX-License-Identifier: GPL-2.0-or-later
"""Map mpirun's error messages to the setting that has to change; the most specific comes first.

The messages are from Open MPI 5 and UCX in Debian 13, recorded with injected faults
(tests/unit/data/openmpi-5-*.err).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """Why it failed, and what to change."""

    cause: str
    action: str


_TABLE: tuple[tuple[str, str, str], ...] = (
    (
        r"UD endpoint .* unhandled timeout",
        "the connection setup over UD datagrams got no answer: UCX dropped them over IPv4, the "
        "peer does not have this GID, the MTUs differ, or a rank waited too long for a processor",
        "Set UCX_UD_ETH_DGID_CHECK=n, and UCX_IB_GID_INDEX to a GID of the transport's RoCE "
        "version; then check the MTU of both interfaces; then use fewer ranks per node.",
    ),
    (
        r"network device '[^'\n]*' is not available",
        "the verbs device, its port, or the GID at UCX_IB_GID_INDEX does not exist; UCX prints "
        "the same message for each",
        "Set UCX_NET_DEVICES to a device and port in `rdma link show`, and UCX_IB_GID_INDEX to an "
        "index in the port's gid_attrs/types in sysfs.",
    ),
    (
        r"No components were able to be opened in the pml framework",
        "Open MPI cannot use its pml ucx: it was built without UCX, or UCX found no device",
        "Check that `ompi_info` lists pml ucx; then check UCX_TLS and `rdma link show`.",
    ),
    (
        r"An invalid value was given for btl_tcp_if_(?:in|ex)clude",
        "the interface configured for TCP does not exist",
        "Set btl_tcp_if_include to the data interface's name in `ip link`.",
    ),
)


def diagnose(output: str) -> Advice | None:
    """Return what to change, or None if the output has no known message."""
    for pattern, cause, action in _TABLE:
        if re.search(pattern, output):
            return Advice(cause, action)
    return None
