# SPDX-License-Identifier: GPL-2.0-or-later
"""What frame_fuzz mutates: correct packets for the queue pairs of verbs_target."""

from __future__ import annotations

import corpus
from forger import GSI_QKEY

QKEY = 0x11111111
"""The Q_Key of its UD queue pairs."""
PLACE = 0x800000
"""Queue pair PLACE + N stands for the one that is at place N when the frame is sent."""


def messages(qpns: dict[str, list[int]], va: int, rkey: int) -> list[bytes]:
    """Return BTH to pad of correct packets for the queue pairs: all kinds of packets."""
    make, reth, aeth = corpus.frames.transport, corpus.frames.reth, corpus.frames.aeth
    atomic, deth = corpus.frames.atomic(va, rkey, 1, 1), corpus.frames.deth
    imm, original = b"\x12\x34\x56\x78", bytes(8)
    found = []
    for qpn in qpns["rc"]:
        found += [
            make("RC_SEND_ONLY", qpn, 0, payload=bytes(65)),
            make("RC_SEND_FIRST", qpn, 0, payload=bytes(1024)),
            make("RC_SEND_MIDDLE", qpn, 1, payload=bytes(1024)),
            make("RC_SEND_LAST_WITH_IMMEDIATE", qpn, 2, imm, bytes(7)),
            make("RC_SEND_ONLY_WITH_INVALIDATE", qpn, 0, rkey.to_bytes(4, "big"), bytes(4)),
            make("RC_RDMA_WRITE_ONLY", qpn, 0, reth(va, rkey, 64), bytes(64)),
            make("RC_RDMA_WRITE_FIRST", qpn, 0, reth(va, rkey, 3000), bytes(1024)),
            make("RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", qpn, 0, reth(va, rkey, 4) + imm, bytes(4)),
            make("RC_RDMA_READ_REQUEST", qpn, 0, reth(va, rkey, 5000)),
            make("RC_COMPARE_SWAP", qpn, 0, atomic),
            make("RC_FETCH_ADD", qpn, 0, atomic),
            make("RC_FLUSH", qpn, 0, bytes(4) + reth(va, rkey, 64)),
            make("RC_ATOMIC_WRITE", qpn, 0, reth(va, rkey, 8), bytes(8)),
            make("RC_ACKNOWLEDGE", qpn, 0, aeth(0x1F, 1)),
            make("RC_ACKNOWLEDGE", qpn, 0, aeth(0x60, 1)),
            make("RC_ACKNOWLEDGE", qpn, 0, aeth(0x21, 1)),
            make("RC_RDMA_READ_RESPONSE_ONLY", qpn, 0, aeth(0x1F, 1), bytes(1024)),
            make("RC_RDMA_READ_RESPONSE_FIRST", qpn, 0, aeth(0x1F, 1), bytes(1024)),
            make("RC_RDMA_READ_RESPONSE_MIDDLE", qpn, 1, payload=bytes(1024)),
            make("RC_ATOMIC_ACKNOWLEDGE", qpn, 5, aeth(0x1F, 1) + original),
        ]
    for qpn in qpns["uc"]:
        found += [
            make("UC_SEND_FIRST", qpn, 0, payload=bytes(1024)),
            make("UC_SEND_LAST", qpn, 1, payload=bytes(9)),
            make("UC_RDMA_WRITE_ONLY", qpn, 0, reth(va, rkey, 64), bytes(64)),
        ]
    for qpn, qkey in [*((qpn, QKEY) for qpn in qpns["ud"]), (1, GSI_QKEY)]:
        found += [
            make("UD_SEND_ONLY", qpn, 0, deth(qkey, 17), bytes(256)),
            make("UD_SEND_ONLY_WITH_IMMEDIATE", qpn, 0, deth(qkey, 17) + imm, bytes(3)),
        ]
    return found


def templates(
    kind: str, target: tuple[bytes, str], attacker: tuple[bytes, str], found: list[bytes]
) -> list[bytes]:
    """Return frames with these packets, and some to a multicast group without members.

    The ends are given by MAC and IP address.
    """
    macs = target[0] + attacker[0]
    net = corpus.frames.Net(kind=kind, a=attacker[1], b=target[1])
    frames = [macs + corpus.frames.frame(net, "a", transport)[12:] for transport in found]
    net.b = "239.1.2.3" if kind == "v2_ipv4" else "ff1e::4791"
    group = bytes.fromhex("01005e010203" if kind == "v2_ipv4" else "333300004791")
    lost = corpus.frames.transport(
        "UD_SEND_ONLY", 0xFFFFFF, 0, corpus.frames.deth(QKEY, 17), bytes(64)
    )
    frames.append(group + macs[6:] + corpus.frames.frame(net, "a", lost)[12:])
    return frames
