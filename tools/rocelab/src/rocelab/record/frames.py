# SPDX-License-Identifier: GPL-2.0-or-later
"""Count what a capture of the data link holds: kinds of frames, message bytes, header bytes.

Counting only: no checks of the frames themselves. Classic pcap (draft-ietf-opsawg-pcap), link type
Ethernet, either byte order, microseconds or nanoseconds. tables/opcodes.csv says how long headers
are; linktap counts in the same way (ebpf/linktap/count.c).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Collection
from dataclasses import InitVar, dataclass
from pathlib import Path

from rocelab import shared_tables
from rocelab.errors import CellError
from rocelab.mapped_file import mapped

_MAGICS = {0xA1B2C3D4, 0xA1B23C4D}
_ETHERNET = 1
_IPV4, _IPV6, _VLAN, _QINQ, _ROCE_V1 = 0x0800, 0x86DD, 0x8100, 0x88A8, 0x8915
_TCP, _UDP = 6, 17
_ROCE_V2_PORT = 4791
_BTH, _ICRC, _GRH = 12, 4, 40
_SYN = 0x02
# both frames that begin an iWARP connection (RFC 5044, 7.1.1): "MPA ID Req Frame", "… Rep Frame"
_MPA = b"MPA ID Re"

_CNP = 0x81  # congestion notification (annex A17.9): no connection's, and without a message
_SERVICES = frozenset({"RC", "UC", "UD"})
_LENGTHS = {
    "RETH": 16, "AETH": 4, "ImmDt": 4, "AtomicETH": 28, "AtomicAckETH": 8, "DETH": 8, "IETH": 4,
    "FETH": 4,
}  # fmt: skip
"""Bytes of an extended header: InfiniBand Architecture Specification, volume 1, chapter 9."""
_DATA = frozenset({"send", "write", "read_response", "atomic", "atomic_write"})
"""Classes of opcodes that carry or begin a message; requests for data and answers do neither."""


def _overheads() -> dict[int, int | None]:
    """Return by opcode the bytes of a packet that are no message; None: it carries no message."""
    return {
        int(row["code"], 16): _BTH + sum(map(_LENGTHS.__getitem__, row["headers"].split())) + _ICRC
        if row["class"] in _DATA
        else None
        for row in shared_tables.rows("opcodes")
        if row["name"].partition("_")[0] in _SERVICES
    }


_OVERHEADS = _overheads()


@dataclass
class Frames:
    """What a capture holds; docs/formats/run.md describes each number."""

    frames: int = 0
    bytes: int = 0
    roce_v1: int = 0
    roce_v2: int = 0
    roce_data: int = 0
    roce_data_bytes: int = 0
    roce_payload_bytes: int = 0
    tcp: int = 0
    tcp_data: int = 0
    tcp_data_bytes: int = 0
    tcp_payload_bytes: int = 0
    iwarp: int = 0
    iwarp_data: int = 0
    iwarp_data_bytes: int = 0
    iwarp_payload_bytes: int = 0
    control: int = 0
    control_payload_bytes: int = 0
    other: int = 0
    undecoded: int = 0

    control_ports: InitVar[Collection[int]] = frozenset()

    def __post_init__(self, control_ports: Collection[int]) -> None:
        """Keep the ports of TCP connections that are not the benchmark's."""
        self._control_ports = control_ports
        self._mpa: set[bytes] = set()  # the connections that iWARP has begun

    @property
    def over_tcp(self) -> int:
        """Bytes that TCP carried, with those of iWARP."""
        return self.tcp_payload_bytes + self.iwarp_payload_bytes

    def add(self, frame: memoryview, length: int) -> None:
        """Count one frame: its captured bytes, and its length on the link."""
        self.frames += 1
        self.bytes += length
        try:
            self._add(frame, length)
        except (IndexError, struct.error):
            self.undecoded += 1  # cut off by the snap length, or by a broken sender

    def _add(self, frame: memoryview, length: int) -> None:
        offset = 14
        ethertype = frame[12] << 8 | frame[13]
        while ethertype in (_VLAN, _QINQ):
            ethertype = frame[offset + 2] << 8 | frame[offset + 3]
            offset += 4
        if ethertype == _ROCE_V1:
            payload = frame[offset + 4] << 8 | frame[offset + 5]
            self.roce_v1 += 1
            self._add_roce(frame, offset + _GRH, payload, length)
        elif ethertype == _IPV4 and not (frame[offset + 6] & 0x1F or frame[offset + 7]):
            # (a later fragment has no transport header, and counts as other)
            total = frame[offset + 2] << 8 | frame[offset + 3]
            header = (frame[offset] & 15) * 4
            ends = slice(offset + 12, offset + 20)
            self._add_ip(frame, frame[offset + 9], ends, offset + header, total - header, length)
        elif ethertype == _IPV6:
            payload = frame[offset + 4] << 8 | frame[offset + 5]
            ends = slice(offset + 8, offset + 40)
            self._add_ip(frame, frame[offset + 6], ends, offset + 40, payload, length)
        else:
            self.other += 1

    def _add_ip(
        self,
        frame: memoryview,
        protocol: int,
        ends: slice,
        offset: int,
        payload: int,
        length: int,
    ) -> None:
        """`ends`: of both addresses; `offset` and `payload`: of what follows the IP headers."""
        if protocol == _TCP:
            carried = payload - (frame[offset + 12] >> 4) * 4
            source = frame[offset] << 8 | frame[offset + 1]
            destination = frame[offset + 2] << 8 | frame[offset + 3]
            if source in self._control_ports or destination in self._control_ports:
                self.control += 1
                self.control_payload_bytes += carried
                return
            if self._is_iwarp(frame, ends, offset, carried):
                self.iwarp += 1
                if carried > 0:
                    self.iwarp_data += 1
                    self.iwarp_data_bytes += length
                    self.iwarp_payload_bytes += carried
                return
            self.tcp += 1
            if carried > 0:
                self.tcp_data += 1
                self.tcp_data_bytes += length
                self.tcp_payload_bytes += carried
        elif protocol == _UDP and frame[offset + 2] << 8 | frame[offset + 3] == _ROCE_V2_PORT:
            self.roce_v2 += 1
            self._add_roce(frame, offset + 8, payload - 8, length)
        else:
            self.other += 1

    def _is_iwarp(self, frame: memoryview, ends: slice, offset: int, carried: int) -> bool:
        """Whether a segment, whose TCP header is at `offset`, is of a connection begun by MPA.

        The handshake before it counts as TCP, which it is.
        """
        body = offset + (frame[offset + 12] >> 4) * 4
        begins = carried > len(_MPA) and frame[body : body + len(_MPA)] == _MPA
        if not (begins or self._mpa):
            return False
        addresses, ports = bytes(frame[ends]), bytes(frame[offset : offset + 4])
        half = len(addresses) // 2
        one, other = addresses[:half] + ports[:2], addresses[half:] + ports[2:]
        connection = min(one, other) + max(one, other)
        if frame[offset + 13] & _SYN:
            self._mpa.discard(connection)
        elif begins:
            self._mpa.add(connection)
        return connection in self._mpa

    def _add_roce(self, frame: memoryview, offset: int, payload: int, length: int) -> None:
        """`payload`: bytes from the BTH to the ICRC, both included."""
        opcode = frame[offset]
        if opcode == _CNP:
            return
        pad = frame[offset + 1] >> 4 & 3
        if opcode not in _OVERHEADS:
            self.undecoded += 1
            return
        overhead = _OVERHEADS[opcode]
        if overhead is None:
            return
        carried = max(0, payload - overhead - pad)
        self.roce_data += 1
        self.roce_data_bytes += length
        self.roce_payload_bytes += carried


def count(path: Path, *, control_ports: Collection[int] = frozenset()) -> Frames:
    """Count the frames of a capture file; TCP on `control_ports` is not the benchmark's.

    Raises CellError when it is no capture, or cut off.
    """
    try:
        with mapped(path) as data:
            return _count(data, control_ports)
    except (OSError, ValueError, struct.error) as error:
        raise CellError(
            f"{path.name} is not a complete capture of an Ethernet link: {error}",
            cause="the capture ended before its last record was written",
        ) from error


def _count(data: mmap.mmap, control_ports: Collection[int]) -> Frames:
    order = next(
        (o for o in "<>" if struct.unpack_from(f"{o}I", data)[0] in _MAGICS),
        None,
    )
    if order is None:
        raise ValueError("it does not begin as classic pcap does")
    (link_type,) = struct.unpack_from(f"{order}I", data, 20)
    if link_type & 0xFFFF != _ETHERNET:
        raise ValueError(f"its link type is {link_type & 0xFFFF}")
    frames = Frames(control_ports=control_ports)
    record = struct.Struct(f"{order}8xII")
    view = memoryview(data)
    offset, end = 24, len(data)
    while offset < end:
        captured, length = record.unpack_from(view, offset)
        offset += record.size
        if captured > end - offset:
            raise ValueError("its last record is cut off")
        frames.add(view[offset : offset + captured], length)
        offset += captured
    return frames
