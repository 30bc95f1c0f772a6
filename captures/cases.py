# SPDX-License-Identifier: GPL-2.0-or-later
"""Lawful traffic that is easily misjudged, and captures that do not show all of it.

Each is as small as its subject allows; tests/unit/capture/test_cases.py has the expected answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from generator import files
from generator.files import Packet
from generator.frames import Net, aeth, frame, reth, transport
from generator.tunnels import IN_FABRICS, KINDS, wrap

START = 1_700_000_000_000_000_000
A_QP, B_QP = 17, 18
NET = Net()
NAK = 0x60
Step = tuple[int, bytes]
"""ns after the previous packet, and the frame."""

CASES: dict[str, tuple[str, Callable[[], bytes]]] = {}


def case(name: str, shows: str) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    def add(make: Callable[[], bytes]) -> Callable[[], bytes]:
        CASES[f"case-{name}.pcap"] = (shows, make)
        return make

    return add


def stamp(steps: list[Step]) -> list[Packet]:
    packets, time = [], START
    for step, data in steps:
        time += step
        packets.append((time, data))
    return packets


def write(psn: int, *, net: Net = NET, qpn: int = B_QP, size: int = 64, **flags: int) -> bytes:
    head = reth(0x1000 + psn * size, 7, size)
    body = bytes(index & 0xFF for index in range(size))
    flags.setdefault("ack", 1)
    return frame(net, "a", transport("RC_RDMA_WRITE_ONLY", qpn, psn, head, body, **flags))


def middle(psn: int, position: str, *, count: int = 0, net: Net = NET) -> bytes:
    """A packet of a WRITE of `count` packets of 256 bytes."""
    head = reth(0x1000, 7, count * 256) if position == "FIRST" else b""
    last = position == "LAST"
    body = bytes(256)
    return frame(net, "a", transport(f"RC_RDMA_WRITE_{position}", B_QP, psn, head, body, ack=last))


def ack(psn: int, msn: int, syndrome: int = 0x1F, *, net: Net = NET, **flags: int) -> bytes:
    qpn = flags.pop("qpn", A_QP)
    return frame(net, "b", transport("RC_ACKNOWLEDGE", qpn, psn, aeth(syndrome, msn), **flags))


def read(psn: int, packets: int) -> bytes:
    head = reth(0x1000 + psn * 256, 7, packets * 256)
    return frame(NET, "a", transport("RC_RDMA_READ_REQUEST", B_QP, psn, head, ack=1))


def response(psn: int, position: str, msn: int = 1) -> bytes:
    head = b"" if position == "MIDDLE" else aeth(0x1F, msn)
    name = f"RC_RDMA_READ_RESPONSE_{position}"
    return frame(NET, "b", transport(name, A_QP, psn, head, bytes(256)))


def stream(count: int, *, net: Net = NET, first: int = 1000, msn: int = 0) -> Iterator[Step]:
    """WRITEs, each acknowledged before the next."""
    for index in range(count):
        yield 1000, write(first + index, net=net)
        yield 2000, ack(first + index, msn + index + 1, net=net)


@case("gbn-selective", "a go-back whose last packet is lost again before the tap")
def _gbn() -> bytes:
    steps = [
        (0, write(10)), (2000, ack(10, 1)), (500, write(12)), (300, write(13)),
        (1000, ack(11, 1, NAK)), (1000, write(11)), (300, write(12)), (600, write(14)),
        (500, ack(11, 2)), (300, ack(12, 3)), (300, ack(13, 3, NAK)), (1000, write(13)),
        (300, write(14)), (1000, ack(13, 4)), (300, ack(14, 5)),
    ]  # fmt: skip
    return files.pcap(stamp(steps))


@case("selective-repeat", "one packet is retransmitted after a NAK, and the rest acknowledged")
def _selective() -> bytes:
    steps = [
        (0, write(10)), (2000, ack(10, 1)), (500, write(12)), (300, write(13)),
        (1000, ack(11, 1, NAK)), (1000, write(11)), (600, write(14)), (2000, ack(14, 5)),
    ]  # fmt: skip
    return files.pcap(stamp(steps))


@case("snap64-read", "64 bytes of each frame: the lengths of READs are cut off")
def _snapped() -> bytes:
    steps: list[Step] = []
    for turn in range(5):
        psn = 1000 + 5 * turn
        places = ("FIRST", "MIDDLE", "MIDDLE", "LAST")
        steps += [(1000, read(psn, 4))]
        steps += [(500, response(psn + n, place, 2 * turn + 1)) for n, place in enumerate(places)]
        steps += [(500, write(psn + 4)), (2000, ack(psn + 4, 2 * turn + 2))]
    return files.pcap(stamp(steps), snap=64)


@case("read-response-lost-before", "a READ response is lost before the tap; the READ is reissued")
def _response_before() -> bytes:
    steps = [
        (0, read(1000, 4)), (500, response(1000, "FIRST")), (500, response(1001, "MIDDLE")),
        (500, response(1003, "LAST")), (3000, read(1002, 2)), (500, response(1002, "FIRST")),
        (500, response(1003, "LAST")),
    ]  # fmt: skip
    return files.pcap(stamp(steps))


@case("read-response-lost-behind", "a READ response is lost after the tap; the READ is reissued")
def _response_behind() -> bytes:
    steps = [
        (0, read(1000, 4)), (500, response(1000, "FIRST")), (500, response(1001, "MIDDLE")),
        (500, response(1002, "MIDDLE")), (500, response(1003, "LAST")), (3000, read(1002, 2)),
        (500, response(1002, "FIRST")), (500, response(1003, "LAST")),
    ]  # fmt: skip
    return files.pcap(stamp(steps))


@case("reads-unanswered", "all responses to one READ of two are lost before the tap")
def _whole_response() -> bytes:
    steps = [
        (0, read(1000, 2)), (300, read(1002, 2)), (500, response(1002, "FIRST", 2)),
        (500, response(1003, "LAST", 2)), (3000, read(1000, 2)), (500, response(1000, "FIRST")),
        (500, response(1001, "LAST")), (500, read(1002, 2)), (500, response(1002, "FIRST", 2)),
        (500, response(1003, "LAST", 2)),
    ]  # fmt: skip
    return files.pcap(stamp(steps))


@case("adaptive-routing", "packets of WRITEs overtake each other by up to three; nothing is lost")
def _adaptive() -> bytes:
    steps: list[Step] = []
    for turn in range(12):
        psn = 1000 + 8 * turn
        order = (1, 0, 4, 3, 2, 6, 5, 7) if turn % 2 else (2, 0, 1, 3, 5, 4, 7, 6)
        for place in order:
            position = {0: "FIRST", 7: "LAST"}.get(place, "MIDDLE")
            steps.append((350, middle(psn + place, position, count=8)))
        steps.append((4000, ack(psn + 7, turn + 1)))
    return files.pcap(stamp(steps))


@case("mirrored", "a port is mirrored in both directions: each packet appears again 700 ns later")
def _mirrored() -> bytes:
    once = stamp([step for turn in range(15) for step in (
        (350, middle(1000 + 4 * turn, "FIRST", count=4)), (350, middle(1001 + 4 * turn, "MIDDLE")),
        (350, middle(1002 + 4 * turn, "MIDDLE")), (350, middle(1003 + 4 * turn, "LAST")),
        (2000, ack(1003 + 4 * turn, turn + 1)))])  # fmt: skip
    return files.pcap(sorted(once + [(time + 700, data) for time, data in once]))


@case("unsorted", "records that are out of the order of their times")
def _unsorted() -> bytes:
    packets = stamp(list(stream(40)))
    for index in range(0, len(packets) - 4, 5):
        packets[index], packets[index + 3] = packets[index + 3], packets[index]
    return files.pcap(packets)


def _two_taps() -> tuple[list[Packet], list[Packet]]:
    """Requests and responses, each at a tap; the second tap's clock lags by 3 µs."""
    packets = stamp(list(stream(20)))
    return packets[::2], [(time - 3000, data) for time, data in packets[1::2]]


@case("skew-requests", "the requests of case-skew-responses.pcap, at a tap with a right clock")
def _skew_a() -> bytes:
    return files.pcap(_two_taps()[0])


@case("skew-responses", "responses at a tap whose clock lags by 3 µs: before their requests")
def _skew_b() -> bytes:
    return files.pcap(_two_taps()[1])


@case("sampled", "one of ten packets")
def _sampled() -> bytes:
    return files.pcap([one for index, one in enumerate(stamp(list(stream(1000)))) if index % 10 == 3
                       or index % 20 == 10])  # fmt: skip


@case("vlan-overlap", "two tenants with equal addresses and QPs, in VLANs 10 and 20")
def _vlans() -> bytes:
    both = [
        list(stream(20, net=replace(NET, vlans=[vlan]), first=1000 + vlan)) for vlan in (10, 20)
    ]
    return files.pcap(stamp([step for pair in zip(*both, strict=True) for step in pair]))


@case("qpn-reuse-near", "a QPN is used again, with a PSN 29 000 further; the MSN restarts")
def _reuse() -> bytes:
    return files.pcap(stamp([*stream(20), *stream(20, first=30000)]))


@case("source-port-spray", "each packet has another UDP source port")
def _spray() -> bytes:
    steps: list[Step] = []
    for index in range(30):
        net = replace(NET, sport=49152 + index)
        steps += [
            (1000, write(1000 + index, net=net)),
            (2000, ack(1000 + index, index + 1, net=net)),
        ]
    return files.pcap(stamp(steps))


@case("reserved-bit", "a reserved bit in each packet of five connections")
def _reserved() -> bytes:
    steps: list[Step] = []
    for index in range(10):
        qp, psn = index % 5, 1000 * (index % 5) + index // 5
        steps += [(1000, write(psn, qpn=100 + qp, resv8a=0x10)),
                  (2000, ack(psn, index // 5 + 1, resv8a=0x10, qpn=200 + qp))]  # fmt: skip
    return files.pcap(stamp(steps))


@case("mid-traffic", "the capture begins in mid-traffic: an ACK for what came before it")
def _midway() -> bytes:
    return files.pcap(stamp([(0, write(1010)), (1000, ack(1008, 900)), (1000, write(1011)),
                             (2000, ack(1011, 903))]))  # fmt: skip


@case("other-port", "RoCE to UDP port 14791")
def _port() -> bytes:
    return files.pcap(stamp(list(stream(5, net=replace(NET, dport=14791)))))


def tunnels(kinds: Sequence[str], *, apart: int = 0) -> bytes:
    """Each kind's queue pairs differ by `apart`: tags separate no networks."""
    steps: list[Step] = []
    for number, kind in enumerate(kinds, 1000):
        more = apart * (number - 1000)
        for net in (NET, Net(kind="v2_ipv6", a="fd00::1", b="fd00::2")):
            psn = 100 * number
            request = write(psn, net=net, qpn=B_QP + more)
            response = ack(psn, 1, net=net, qpn=A_QP + more)
            steps += [(1000, wrap(kind, request, number)),
                      (2000, wrap(kind, response, number, reverse=True))]  # fmt: skip
    return files.pcap(stamp(steps))


@case("tunnels", "a WRITE and its ACK in each kind of tunnel")
def _tunnels() -> bytes:
    return tunnels(KINDS)


@case("fabrics", "a WRITE and its ACK in each header of a fabric, carrier or sampler")
def _fabrics() -> bytes:
    return tunnels(IN_FABRICS, apart=2)
