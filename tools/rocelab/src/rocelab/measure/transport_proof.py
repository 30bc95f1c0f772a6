# SPDX-License-Identifier: GPL-2.0-or-later
"""Prove from counters and frames that a cell used the transport in its name. Pure functions.

docs/formats/run.md says why the counts are compared exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rocelab.measure.counters import Counters
from rocelab.plans.benchmarks.tool import Measurement
from rocelab.plans.catalog import Transport
from rocelab.record import adapter
from rocelab.record.faults_document import UNALTERED, Altered
from rocelab.record.frames import Frames
from rocelab.record.rxestat_document import Stages

RENDEZVOUS_BYTES = 64 * 1024
"""TCP payload that a verbs benchmark may use to set up its connection (perftest: below 4 KiB)."""


_FEW = 100
"""Of so many frames a busy capture may lose one."""
_MAX_PATH_MTU = 4096
_MAX_SEGMENT = 65535
"""Of TCP, before the adapter segments it."""
_FPDU = 20
"""The least that iWARP adds to a message: length and CRC of MPA, headers of DDP and RDMAP."""


@dataclass(frozen=True)
class Check:
    """One condition, with the expected and the found number."""

    check: str
    expected: str
    found: int
    ok: bool


@dataclass(frozen=True)
class Proof:
    """All conditions of one step."""

    transport: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether all conditions hold."""
        return all(check.ok for check in self.checks)

    def failures(self) -> str:
        """Describe the conditions that do not hold."""
        return failures(self.checks)


def failures(checks: Iterable[Check]) -> str:
    """Describe the conditions that do not hold; empty if all do."""
    return "; ".join(
        f"{check.check} is {check.found}, expected {check.expected}"
        for check in checks
        if not check.ok
    )


def prove(
    transport: Transport,
    moved: Mapping[str, Counters],
    frames: Frames | None,
    measured: Measurement,
    *,
    lost: int = 0,
    max_loopback: int = 0,
    altered: Altered = UNALTERED,
    managed: int | None = None,
    own_tcp: bool = False,
    parts_early: bool = False,
) -> Proof:
    """Check all conditions of one step.

    `moved`: each node's counter increases. `frames`: the frames captured meanwhile, None where
    nothing may capture them: then the counters alone must prove the transport. `measured`:
    the least that the benchmark says it sent. `lost`: frames that the capture had to drop, which
    the counters must then prove; only a few may be. `max_loopback`: the most packets that devices
    may have sent to themselves, within the driver. `altered`: what the plan's faults did to the
    numbers of packets. `managed`: where a fault ends the connection, the packets of the
    connection manager on the wire, which repeats its own after the counters were read. Packets
    then come to a queue pair that is gone, and a driver counts them as dropped. `own_tcp`: a user's
    program may use TCP as well, as long as RoCE carries more. `parts_early`: it may end a
    connection while packets are under way, which the other end then counts as dropped.
    """
    if frames is None:
        return Proof(transport.name, tuple(_by_counters(transport, moved, measured)))
    few = [_at_most("frames that the capture lost", lost, 1 + frames.frames // _FEW)] * (lost > 0)
    if transport.by == "adapter":
        if frames.iwarp and transport.is_iwarp:
            return Proof(transport.name, (*_soft_iwarp(moved, frames, measured, lost), *few))
        rules = _ipoib if transport.family == "tcp" else _by_adapter
        return Proof(transport.name, (*rules(transport, moved, frames, measured), *few))
    if transport.family == "tcp":
        return Proof(transport.name, (*_tcp(moved, frames, measured, lost), *few))
    late = _late(moved, altered) if parts_early or managed is not None else 0
    other_tcp_bytes = max(RENDEZVOUS_BYTES, frames.roce_payload_bytes if own_tcp else 0)
    checks = _roce(
        transport, moved, frames, measured, max_loopback, lost, altered, late, other_tcp_bytes
    )
    if managed is not None:
        checks = [_within(check, managed) for check in checks]
    return Proof(transport.name, (*checks, *few))


def check_probe(node: str, seen: Stages, counters: Counters) -> tuple[Check, ...]:
    """Check that rxestat saw every packet that the driver counted, except records it lost."""
    checks = []
    for event, counter in (("tx", "sent_pkts"), ("rx", "rcvd_pkts")):
        total = sum(count for (name, _), (count, _) in seen.packets.items() if name == event)
        high = counters.rxe.get(counter, 0)
        low = max(0, high - seen.lost)
        expected = f"{high}" if low == high else f"{low} to {high}"
        name = f"{node} {event} packets in rxestat"
        checks.append(Check(name, expected, total, low <= total <= high))
    return tuple(checks)


def _roce(
    transport: Transport,
    moved: Mapping[str, Counters],
    frames: Frames,
    measured: Measurement,
    max_loopback: int,
    lost: int,
    altered: Altered,
    late: int,
    most_tcp: int,
) -> list[Check]:
    sent = {node: counters.rxe.get("sent_pkts", 0) for node, counters in moved.items()}
    received = sum(counters.rxe.get("rcvd_pkts", 0) for counters in moved.values())
    dropped = sum(counters.dropped for counters in moved.values())
    right, wrong = frames.roce_v2, frames.roce_v1
    names = ("v2", "v1")
    if transport.roce == 1:
        right, wrong, names = wrong, right, ("v1", "v2")
    return [
        *(_above(f"{node} sent_pkts", count, 0) for node, count in sent.items()),
        _less(
            f"RoCE {names[0]} frames on the wire",
            right,
            sum(sent.values()) + altered.on_wire,
            dropped + max_loopback + lost,
        ),
        # packets that a qdisc dropped are not on the wire; looped-back packets are received too,
        # and so are those that the capture lost
        _less(
            "sum of rcvd_pkts",
            received,
            right - altered.on_wire + altered.received - late + max_loopback + lost,
            max_loopback + lost,
        )
        if dropped
        else _equal("sum of rcvd_pkts", received, sum(sent.values()) + altered.received - late),
        _equal(f"RoCE {names[1]} frames on the wire", wrong, 0),
        _at_least(
            "RoCE data packets on the wire", frames.roce_data, max(measured.messages - lost, 1)
        ),
        _at_least(
            "RoCE payload bytes on the wire",
            frames.roce_payload_bytes,
            max(measured.payload_bytes - lost * _MAX_PATH_MTU, 0),
        ),
        _at_most("TCP payload bytes on the wire", frames.over_tcp, most_tcp),
        _equal("undecoded frames", frames.undecoded, 0),
    ]


def _within(check: Check, managed: int) -> Check:
    """Allow an exact number so many more or fewer."""
    if not check.expected.isdecimal() or check.expected == "0":
        return check
    low, high = max(0, int(check.expected) - managed), int(check.expected) + managed
    return Check(check.check, f"{low} to {high}", check.found, low <= check.found <= high)


def _late(moved: Mapping[str, Counters], altered: Altered) -> int:
    """Packets that came to a queue pair that was gone: dropped, and not for what faults did."""
    dropped = sum(counters.rxe.get("rcvd_drops", 0) for counters in moved.values())
    return max(0, dropped - altered.spoilt)


def _by_adapter(
    transport: Transport, moved: Mapping[str, Counters], frames: Frames, measured: Measurement
) -> list[Check]:
    """Check an adapter's traffic, and that it did not cross the interface instead."""
    checks = _by_device(moved, measured)
    checks.append(_at_most("TCP payload bytes on the wire", frames.over_tcp, RENDEZVOUS_BYTES))
    if transport.is_iwarp:
        seen = frames.roce_v1 + frames.roce_v2
        checks.append(_equal("RoCE frames on the wire", seen, 0))
    if transport.roce:
        wrong = frames.roce_v2 if transport.roce == 1 else frames.roce_v1
        checks.append(_equal("RoCE frames of the other version on the wire", wrong, 0))
    return checks


def _soft_iwarp(
    moved: Mapping[str, Counters], frames: Frames, measured: Measurement, lost: int
) -> list[Check]:
    """Check what a soft iWARP device (siw) sends: its TCP connections, which MPA begins.

    It counts nothing itself, but its segments are the kernel's.
    """
    least = measured.payload_bytes + _FPDU * measured.messages
    return [
        *(
            _above(f"{node} {name}", counters.tcp.get(name, 0), 0)
            for node, counters in moved.items()
            for name in ("OutSegs", "InSegs")
        ),
        _at_least(
            "iWARP bytes on the wire",
            frames.iwarp_payload_bytes,
            max(least - lost * _MAX_SEGMENT, 1),
        ),
        _at_most("other TCP payload on the wire", frames.tcp_payload_bytes, RENDEZVOUS_BYTES),
        _equal("RoCE frames on the wire", frames.roce_v1 + frames.roce_v2, 0),
    ]


def _by_device(moved: Mapping[str, Counters], measured: Measurement) -> list[Check]:
    """Check an adapter's traffic, which a capture on the host cannot see, by counters at both ends.

    These are not exact to the packet: others use the port, and some counters lag. So we check
    lower bounds.
    """
    traffic = {
        node: adapter.sent_and_received(counters.adapter) for node, counters in moved.items()
    }
    sent_bytes = [each.sent_bytes for each in traffic.values() if each.sent_bytes is not None]
    received = sum(each.received or 0 for each in traffic.values())
    checks = [
        *(_above(f"{node} packets sent by the device", each.sent or 0, 0)
          for node, each in traffic.items()),
        _at_least("packets received by the devices", received, max(measured.messages, 1)),
    ]  # fmt: skip
    if sent_bytes:
        least = measured.payload_bytes
        checks.append(_at_least("bytes sent by the devices", sum(sent_bytes), least))
    return checks


def _by_counters(
    transport: Transport, moved: Mapping[str, Counters], measured: Measurement
) -> list[Check]:
    """Check what the counters at both ends show without a capture.

    They count the traffic of others, too, so all of this is lower bounds.
    """
    if transport.is_rxe:
        return [_above("frames in a capture", 0, 0)]
    if transport.family == "verbs":
        return _by_device(moved, measured)
    checks = _by_interface(moved, measured)
    if transport.by != "adapter":
        segments = sum(counters.tcp.get("OutSegs", 0) for counters in moved.values())
        least = -(-measured.payload_bytes // _MAX_SEGMENT)
        checks += [*_rxe_idle(moved), _at_least("TCP segments sent", segments, max(least, 1))]
    return checks


def _rxe_idle(moved: Mapping[str, Counters]) -> list[Check]:
    return [
        _equal(f"{node} {name}", counters.rxe.get(name, 0), 0)
        for node, counters in moved.items()
        for name in ("sent_pkts", "rcvd_pkts")
    ]


def _ipoib(
    _: Transport, moved: Mapping[str, Counters], frames: Frames, measured: Measurement
) -> list[Check]:
    """Check IPoIB by the interface's counters, because its frames are not Ethernet frames."""
    del frames
    return _by_interface(moved, measured)


def _by_interface(moved: Mapping[str, Counters], measured: Measurement) -> list[Check]:
    sent = sum(counters.netdev.get("tx_bytes", 0) for counters in moved.values())
    return [
        *(
            _above(f"{node} {name}", counters.netdev.get(name, 0), 0)
            for node, counters in moved.items()
            for name in ("tx_packets", "rx_packets")
        ),
        _at_least("bytes sent by the interfaces", sent, max(measured.payload_bytes, 1)),
    ]


def _tcp(
    moved: Mapping[str, Counters], frames: Frames, measured: Measurement, lost: int
) -> list[Check]:
    return [
        *_rxe_idle(moved),
        _equal("RoCE frames on the wire", frames.roce_v1 + frames.roce_v2, 0),
        _at_least(
            "TCP payload bytes on the wire",
            frames.tcp_payload_bytes,
            max(measured.payload_bytes - lost * _MAX_SEGMENT, 1),
        ),
    ]


def _equal(check: str, count: int, bound: int) -> Check:
    return Check(check, f"{bound}", count, count == bound)


def _less(check: str, count: int, bound: int, by: int) -> Check:
    """Allow up to `by` fewer: some of the packets that a qdisc dropped may not be RoCE."""
    low = max(0, bound - by)
    return Check(check, f"{low} to {bound}" if by else f"{bound}", count, low <= count <= bound)


def _above(check: str, count: int, bound: int) -> Check:
    return Check(check, f"more than {bound}", count, count > bound)


def _at_least(check: str, count: int, bound: int) -> Check:
    return Check(check, f"at least {bound}", count, count >= bound)


def _at_most(check: str, count: int, bound: int) -> Check:
    return Check(check, f"at most {bound}", count, count <= bound)
