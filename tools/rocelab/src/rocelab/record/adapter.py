# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of a verbs device that creates its own packets: their names for sent and received.

An adapter's packets pass no interface of the host, so no capture has them; its counters at both
ends are the proof. Drivers have different counters: the known ones are in order below, those that
count only RDMA first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_ETHTOOL = re.compile(r"^\s+([A-Za-z0-9_]{1,64}): (\d{1,20})\s*$")
_WORD = 4
"""InfiniBand's port data counters count 32-bit words."""


@dataclass(frozen=True)
class Moved:
    """The counters of one end's device; None for a counter that it does not have."""

    sent: int | None
    received: int | None
    sent_bytes: int | None


# mlx5's vPorts; rxe; bnxt_re and efa; irdma; hfi1; the port counters of InfiniBand (IBTA vol. 1,
# 16.1.3.5), which RoCE adapters have, too, if they have any
_SENT = (
    *("ethtool.tx_vport_rdma_unicast_packets", "hw.sent_pkts", "hw.tx_pkts"),
    *("hw.ip4OutPkts", "hw.ip6OutPkts", "hw.TxPkt", "port.port_xmit_packets"),
)
_RECEIVED = (
    *("ethtool.rx_vport_rdma_unicast_packets", "hw.rcvd_pkts", "hw.rx_pkts"),
    *("hw.ip4InPkts", "hw.ip6InPkts", "hw.RxPkt", "port.port_rcv_packets"),
)
_SENT_BYTES = (
    ("ethtool.tx_vport_rdma_unicast_bytes", 1),
    ("hw.tx_bytes", 1),
    ("hw.ip4OutOctets", 1),
    ("hw.ip6OutOctets", 1),
    ("port.port_xmit_data", _WORD),
)


def moved(counters: Mapping[str, int]) -> Moved:
    """Return packets and bytes from the differences of a device's counters.

    The first counter that changed, or else the first that exists: some exist but never count.
    """
    return Moved(
        _first(counters, _SENT),
        _first(counters, _RECEIVED),
        next(
            (counters[name] * unit for name, unit in _SENT_BYTES if counters.get(name)),
            0 if any(name in counters for name, _ in _SENT_BYTES) else None,
        ),
    )


def _first(counters: Mapping[str, int], names: tuple[str, ...]) -> int | None:
    there = [counters[name] for name in names if name in counters]
    return next((value for value in there if value), there[0] if there else None)


def ethtool_statistics(listing: str) -> dict[str, int]:
    """Return name → value from `ethtool -S`, without the counters of single queues."""
    found = (_ETHTOOL.match(line) for line in listing.splitlines())
    return {match[1]: int(match[2]) for match in found if match}


def since(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the increments of counters; one that decreased is a gauge and not a counter."""
    differences = {name: value - before[name] for name, value in after.items() if name in before}
    return {name: value for name, value in differences.items() if value >= 0}
