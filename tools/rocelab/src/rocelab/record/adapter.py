# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of a verbs device that makes its packets itself: what it calls sent and received.

What an adapter sends is on no interface of the host, so no capture there has it; its own counters
are the witness, at both ends. Which ones it has differs by driver: those known are in order below,
the ones that count nothing but RDMA first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_ETHTOOL = re.compile(r"^\s+([A-Za-z0-9_]{1,64}): (\d{1,20})\s*$")
_WORD = 4
"""InfiniBand's port counters of data count 32-bit words."""


@dataclass(frozen=True)
class Moved:
    """What one end's device says; None: it has no such counter."""

    sent: int | None
    received: int | None
    sent_bytes: int | None


# mlx5's vPorts; rxe; bnxt_re and efa; irdma; cxgb4; hfi1; the port counters of InfiniBand (IBTA
# vol. 1, 16.1.3.5), which RoCE adapters have, too, if they have any
_SENT = (
    *("ethtool.tx_vport_rdma_unicast_packets", "hw.sent_pkts", "hw.tx_pkts"),
    *("hw.ip4OutPkts", "hw.ip6OutPkts", "hw.ip4OutSegs", "hw.ip6OutSegs"),
    *("hw.TxPkt", "port.port_xmit_packets"),
)
_RECEIVED = (
    *("ethtool.rx_vport_rdma_unicast_packets", "hw.rcvd_pkts", "hw.rx_pkts"),
    *("hw.ip4InPkts", "hw.ip6InPkts", "hw.ip4InSegs", "hw.ip6InSegs"),
    *("hw.RxPkt", "port.port_rcv_packets"),
)
_SENT_BYTES = (
    ("ethtool.tx_vport_rdma_unicast_bytes", 1),
    ("hw.tx_bytes", 1),
    ("hw.ip4OutOctets", 1),
    ("hw.ip6OutOctets", 1),
    ("port.port_xmit_data", _WORD),
)


def sent_and_received(counters: Mapping[str, int]) -> Moved:
    """Packets and bytes out of the differences of all of a device's counters.

    The first that moved, else the first that is there: some are there and never count.
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
    """Name → value from `ethtool -S`; those of single queues have other names, and stay out."""
    matches = (_ETHTOOL.match(line) for line in listing.splitlines())
    return {match[1]: int(match[2]) for match in matches if match}


def since(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """How far counters moved; one that went back is a gauge, and no count."""
    differences = {name: value - before[name] for name, value in after.items() if name in before}
    return {name: value for name, value in differences.items() if value >= 0}
