# SPDX-License-Identifier: GPL-2.0-or-later
"""From what mpirun said to the setting that has to change: a table, the most telling line first.

The messages are those of Open MPI 5 and UCX in Debian 13, recorded with the fault planted
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
        "the wire-up over UD datagrams found no answer: its GID is not the one that the peer "
        "answers to, the two MTUs differ, or a rank had no processor for too long",
        "UCX_IB_GID_INDEX: the GID of the link-local address, of the transport's RoCE version; "
        "then the MTU of both interfaces; then fewer ranks a node.",
    ),
    (
        r"network device '[^'\n]*' is not available",
        "the verbs device, this port of it, or a GID at UCX_IB_GID_INDEX is not there: UCX tells "
        "none of these from another",
        "UCX_NET_DEVICES: a device and port of `rdma link show`; UCX_IB_GID_INDEX: an index that "
        "the port's gid_attrs/types in sysfs has.",
    ),
    (
        r"No components were able to be opened in the pml framework",
        "Open MPI cannot use its pml ucx: it was built without UCX, or UCX found nothing to use",
        "pml ucx: `ompi_info | grep ucx`, then UCX_TLS and `rdma link show`.",
    ),
    (
        r"An invalid value was given for btl_tcp_if_(?:in|ex)clude",
        "the interface that TCP is told to use is not there",
        "btl_tcp_if_include: the data interface's name, as `ip link` has it.",
    ),
)


def diagnose(said: str) -> Advice | None:
    """What to change, or None when nothing in it is known."""
    for pattern, cause, action in _TABLE:
        if re.search(pattern, said):
            return Advice(cause, action)
    return None
