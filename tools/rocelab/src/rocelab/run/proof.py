# SPDX-License-Identifier: GPL-2.0-or-later
"""Did the transport that a cell is named after carry it? A pure rule over counters and frames.

docs/formats/run.md says why the counts are compared exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rocelab.bench.catalog import Transport
from rocelab.bench.tool import Measurement
from rocelab.run import adapter
from rocelab.run.counters import Counters
from rocelab.run.frames import Frames
from rocelab.run.stages import Stages

RENDEZVOUS_BYTES = 64 * 1024
"""TCP payload that a verbs benchmark may spend on finding its peer (perftest: below 4 KiB)."""


@dataclass(frozen=True)
class Check:
    """One condition, as numbers."""

    check: str
    expected: str
    found: int
    ok: bool


@dataclass(frozen=True)
class Proof:
    """Every condition of one step."""

    transport: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether all of them hold."""
        return all(check.ok for check in self.checks)

    def failures(self) -> str:
        """The conditions that do not hold, in words."""
        return failures(self.checks)


def failures(checks: Iterable[Check]) -> str:
    """The conditions that do not hold, in words; empty when all do."""
    return "; ".join(
        f"{check.check} is {check.found}, expected {check.expected}"
        for check in checks
        if not check.ok
    )


def judge(
    transport: Transport,
    moved: Mapping[str, Counters],
    frames: Frames,
    measured: Measurement,
    *,
    to_themselves: int = 0,
) -> Proof:
    """Judge one step.

    `moved`: node → how far its counters moved. `frames`: what crossed the link meanwhile.
    `measured`: what the benchmark says it moved at least. `to_themselves`: so many packets may have
    gone round in the driver at most, from a device to itself.
    """
    if transport.by == "adapter":
        rules = _over_interface if transport.family == "tcp" else _by_adapter
        return Proof(transport.name, tuple(rules(transport, moved, frames, measured)))
    if transport.family == "tcp":
        return Proof(transport.name, tuple(_tcp(moved, frames, measured)))
    return Proof(transport.name, tuple(_roce(transport, moved, frames, measured, to_themselves)))


def judge_probe(node: str, seen: Stages, counters: Counters) -> tuple[Check, ...]:
    """Did rxestat see every packet that the driver counted? Records that it lost may be missing."""
    checks = []
    for event, counter in (("tx", "sent_pkts"), ("rx", "rcvd_pkts")):
        found = sum(count for (of, _), (count, _) in seen.packets.items() if of == event)
        high = counters.rxe.get(counter, 0)
        low = max(0, high - seen.lost)
        expected = f"{high}" if low == high else f"{low} to {high}"
        name = f"{node} {event} packets in rxestat"
        checks.append(Check(name, expected, found, low <= found <= high))
    return tuple(checks)


def _roce(
    transport: Transport,
    moved: Mapping[str, Counters],
    frames: Frames,
    measured: Measurement,
    to_themselves: int,
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
            sum(sent.values()),
            dropped + to_themselves,
        ),
        # what netem lost is not on the wire; what went round in the driver was received, too
        _less("sum of rcvd_pkts", received, right + to_themselves, to_themselves)
        if dropped
        else _equal("sum of rcvd_pkts", received, sum(sent.values())),
        _equal(f"RoCE {names[1]} frames on the wire", wrong, 0),
        _at_least("RoCE data packets on the wire", frames.roce_data, max(measured.messages, 1)),
        _at_least(
            "RoCE payload bytes on the wire", frames.roce_payload_bytes, measured.payload_bytes
        ),
        _at_most("TCP payload bytes on the wire", frames.tcp_payload_bytes, RENDEZVOUS_BYTES),
        _equal("undecoded frames", frames.undecoded, 0),
    ]


def _by_adapter(
    transport: Transport, moved: Mapping[str, Counters], frames: Frames, measured: Measurement
) -> list[Check]:
    """No capture on a host sees what its adapter sends: the counters at both ends have to say it.

    They are not exact to the packet (others use the port; some read with delay), so these are
    lower bounds; and what would have gone over the interface instead must not be there.
    """
    said = {node: adapter.moved(counters.adapter) for node, counters in moved.items()}
    sent_bytes = [each.sent_bytes for each in said.values() if each.sent_bytes is not None]
    received = sum(each.received or 0 for each in said.values())
    checks = [
        *(_above(f"{node} packets sent by the device", each.sent or 0, 0)
          for node, each in said.items()),
        _at_least("packets received by the devices", received, max(measured.messages, 1)),
        _at_most("TCP payload bytes on the wire", frames.tcp_payload_bytes, RENDEZVOUS_BYTES),
    ]  # fmt: skip
    if sent_bytes:
        least = measured.payload_bytes
        checks.append(_at_least("bytes sent by the devices", sum(sent_bytes), least))
    if transport.roce:
        wrong = frames.roce_v2 if transport.roce == 1 else frames.roce_v1
        checks.append(_equal("RoCE frames of the other version on the wire", wrong, 0))
    return checks


def _over_interface(
    _: Transport, moved: Mapping[str, Counters], frames: Frames, measured: Measurement
) -> list[Check]:
    """IPoIB: its frames are not Ethernet's, so the interface's own counters are the witness."""
    del frames
    sent = sum(counters.netdev.get("tx_bytes", 0) for counters in moved.values())
    return [
        *(
            _above(f"{node} {name}", counters.netdev.get(name, 0), 0)
            for node, counters in moved.items()
            for name in ("tx_packets", "rx_packets")
        ),
        _at_least("bytes sent by the interfaces", sent, max(measured.payload_bytes, 1)),
    ]


def _tcp(moved: Mapping[str, Counters], frames: Frames, measured: Measurement) -> list[Check]:
    return [
        *(
            _equal(f"{node} {name}", counters.rxe.get(name, 0), 0)
            for node, counters in moved.items()
            for name in ("sent_pkts", "rcvd_pkts")
        ),
        _equal("RoCE frames on the wire", frames.roce_v1 + frames.roce_v2, 0),
        _at_least(
            "TCP payload bytes on the wire",
            frames.tcp_payload_bytes,
            max(measured.payload_bytes, 1),
        ),
    ]


def _equal(check: str, found: int, bound: int) -> Check:
    return Check(check, f"{bound}", found, found == bound)


def _less(check: str, found: int, bound: int, by: int) -> Check:
    """At most so many fewer: of what netem dropped, not all need be RoCE packets."""
    low = max(0, bound - by)
    return Check(check, f"{low} to {bound}" if by else f"{bound}", found, low <= found <= bound)


def _above(check: str, found: int, bound: int) -> Check:
    return Check(check, f"more than {bound}", found, found > bound)


def _at_least(check: str, found: int, bound: int) -> Check:
    return Check(check, f"at least {bound}", found, found >= bound)


def _at_most(check: str, found: int, bound: int) -> Check:
    return Check(check, f"at most {bound}", found, found <= bound)
