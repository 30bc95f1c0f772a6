# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE frames from their fields."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field
from functools import cache

from generator.crc import icrc

PORT = 4791

# code, extended headers in wire order, carries payload (IBA volume 1, chapter 9)
_SENDS = {0: ("SEND_FIRST", ""), 1: ("SEND_MIDDLE", ""), 2: ("SEND_LAST", ""),
          3: ("SEND_LAST_WITH_IMMEDIATE", "I"), 4: ("SEND_ONLY", ""),
          5: ("SEND_ONLY_WITH_IMMEDIATE", "I")}  # fmt: skip
_WRITES = {6: ("RDMA_WRITE_FIRST", "R"), 7: ("RDMA_WRITE_MIDDLE", ""), 8: ("RDMA_WRITE_LAST", ""),
           9: ("RDMA_WRITE_LAST_WITH_IMMEDIATE", "I"), 10: ("RDMA_WRITE_ONLY", "R"),
           11: ("RDMA_WRITE_ONLY_WITH_IMMEDIATE", "RI")}  # fmt: skip
_REST = {12: ("RDMA_READ_REQUEST", "R"), 13: ("RDMA_READ_RESPONSE_FIRST", "A"),
         14: ("RDMA_READ_RESPONSE_MIDDLE", ""), 15: ("RDMA_READ_RESPONSE_LAST", "A"),
         16: ("RDMA_READ_RESPONSE_ONLY", "A"), 17: ("ACKNOWLEDGE", "A"),
         18: ("ATOMIC_ACKNOWLEDGE", "AO"), 19: ("COMPARE_SWAP", "T"),
         20: ("FETCH_ADD", "T")}  # fmt: skip
_INVALIDATE = {22: ("SEND_LAST_WITH_INVALIDATE", "V"), 23: ("SEND_ONLY_WITH_INVALIDATE", "V")}


def _table() -> dict[str, tuple[int, str]]:
    table: dict[str, tuple[int, str]] = {}

    def add(service: str, base: int, rows: dict[int, tuple[str, str]], before: str) -> None:
        for code, (name, headers) in rows.items():
            response = "RESPONSE" in name or "ACKNOWLEDGE" in name
            prefix = ("E" if before == "ED" else "") if response else before
            table[f"{service}_{name}"] = (base + code, prefix + headers)

    add("RC", 0x00, _SENDS | _WRITES | _REST | _INVALIDATE, "")
    table["RC_FLUSH"] = (0x1C, "FR")
    table["RC_ATOMIC_WRITE"] = (0x1D, "R")
    add("UC", 0x20, _SENDS | _WRITES, "")
    add("RD", 0x40, _SENDS | _WRITES | _REST, "ED")
    table["RD_RESYNC"] = (0x55, "ED")
    table["RD_FLUSH"] = (0x5C, "EDFR")
    table["UD_SEND_ONLY"] = (0x64, "D")
    table["UD_SEND_ONLY_WITH_IMMEDIATE"] = (0x65, "DI")
    table["CNP"] = (0x81, "C")
    add("XRC", 0xA0, _SENDS | _WRITES | _REST | _INVALIDATE, "X")
    return table


OPCODES = _table()
SIZES = {"E": 4, "D": 8, "X": 4, "F": 4, "R": 16, "T": 28, "A": 4, "O": 8, "I": 4, "V": 4, "C": 16}


@dataclass
class Net:
    """The addresses of two hosts, and how packets travel between them."""

    kind: str = "v2_ipv4"
    """v1, v2_ipv4 or v2_ipv6."""
    a: str = "10.0.0.1"
    b: str = "10.0.0.2"
    vlans: list[int] = field(default_factory=list)
    tclass: int = 0
    ttl: int = 64
    sport: int = 49152
    dport: int = PORT
    options: bytes = b""
    """IPv4 options, a multiple of 4 bytes."""
    extensions: list[tuple[int, bytes]] = field(default_factory=list)
    """IPv6 extension headers: protocol number, and its bytes from the third on."""

    def address(self, side: str) -> bytes:
        packed = _address_bytes(self.a if side == "a" else self.b)
        if self.kind != "v2_ipv4" and len(packed) == 4:
            return bytes(10) + b"\xff\xff" + packed
        return packed


@cache
def _address_bytes(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def bth(opcode: int, dqpn: int, psn: int, *, pad: int = 0, ack: bool = False, se: bool = False,
        mig: bool = True, tver: int = 0, pkey: int = 0xFFFF, resv8a: int = 0,
        resv7: int = 0) -> bytes:  # fmt: skip
    """A Base Transport Header."""
    flags = se << 7 | mig << 6 | pad << 4 | tver
    word = (resv8a << 24 | dqpn, (ack << 7 | resv7) << 24 | psn)
    return struct.pack(">BBHII", opcode, flags, pkey, *word)


def aeth(syndrome: int, msn: int) -> bytes:
    return struct.pack(">I", syndrome << 24 | msn)


def reth(va: int, rkey: int, length: int) -> bytes:
    return struct.pack(">QII", va, rkey, length)


def deth(qkey: int, qpn: int) -> bytes:
    return struct.pack(">II", qkey, qpn)


def atomic(va: int, rkey: int, swap_add: int, compare: int) -> bytes:
    return struct.pack(">QIQQ", va, rkey, swap_add, compare)


def _network(net: Net, src: bytes, dst: bytes, length: int) -> tuple[bytes, bytes]:
    """Network and UDP header before `length` bytes from BTH to ICRC."""
    udp = struct.pack(">HHHH", net.sport, net.dport, 8 + length, 0)
    if net.kind == "v2_ipv4":
        words = 5 + len(net.options) // 4
        header = struct.pack(
            ">BBHHHBBH4s4s", 0x40 | words, net.tclass, words * 4 + 8 + length, 0x1234, 0x4000,
            net.ttl, 17, 0, src, dst,
        ) + net.options  # fmt: skip
        return header[:10] + struct.pack(">H", checksum(header)) + header[12:], udp
    first = 6 << 28 | net.tclass << 20 | 0x12345
    if net.kind == "v1":
        return struct.pack(">IHBB16s16s", first, length, 0x1B, net.ttl, src, dst), b""
    chain = b""
    following = 17
    for protocol, body in reversed(net.extensions):
        padded = body + bytes(-(len(body) + 2) % 8)
        chain = bytes([following, (len(padded) + 2) // 8 - 1]) + padded + chain
        following = protocol
    size = len(chain) + 8 + length
    header = struct.pack(">IHBB16s16s", first, size, following, net.ttl, src, dst)
    return header + chain, udp


def ethernet(net: Net, src: bytes, dst: bytes, packet: bytes) -> bytes:
    """An Ethernet frame, without FCS; MAC addresses come from the last bytes of the others."""
    kind = {"v1": 0x8915, "v2_ipv4": 0x0800, "v2_ipv6": 0x86DD}[net.kind]
    tags = b"".join(
        struct.pack(">HH", 0x88A8 if len(net.vlans) > 1 and index == 0 else 0x8100, tag)
        for index, tag in enumerate(net.vlans)
    )
    macs = b"\x02\x00\x00" + dst[-3:] + b"\x02\x00\x00" + src[-3:]
    return macs + tags + struct.pack(">H", kind) + packet


def layers(net: Net, sender: str, transport: bytes) -> tuple[bytes, bytes, bytes]:
    """Network header, UDP header and `transport` (BTH to pad), as the ICRC wants them."""
    src, dst = net.address(sender), net.address("b" if sender == "a" else "a")
    network, udp = _network(net, src, dst, len(transport) + 4)
    return network, udp, transport


def frame(
    net: Net, sender: str, transport: bytes, *, crc: bytes | None = None, link: bool = True
) -> bytes:
    """A frame around `transport` (BTH to pad); its ICRC is right unless `crc` gives another."""
    src, dst = net.address(sender), net.address("b" if sender == "a" else "a")
    network, udp, _ = layers(net, sender, transport)
    good = icrc(net.kind, network, udp, transport)
    packet = network + udp + transport + (good if crc is None else crc)
    return ethernet(net, src, dst, packet) if link else packet


def transport(name: str, dqpn: int, psn: int, headers: bytes = b"", payload: bytes = b"",
              **flags: int) -> bytes:  # fmt: skip
    """BTH, extended headers, payload and pad of an opcode by name."""
    code, kinds = OPCODES[name]
    assert len(headers) == sum(SIZES[kind] for kind in kinds), name
    pad = flags.pop("pad", -len(payload) % 4)
    return bth(code, dqpn, psn, pad=pad, **flags) + headers + payload + bytes(pad)  # type: ignore[arg-type]
