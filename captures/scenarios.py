# SPDX-License-Identifier: GPL-2.0-or-later
"""The made samples of the corpus: one case each, as small as shows it."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from dataclasses import replace

from cases import CASES
from generator import files, fragments, frames, infiniband, lossy_wire, schedule
from generator.crc import crc32, icrc, pseudo_packet
from generator.files import Packet
from generator.frames import Net, aeth, atomic, deth, frame, reth, transport

START = schedule.START_NS
A_QP, B_QP = 17, 18
V1 = Net(kind="v1", sport=0)
V4 = Net()
V6 = Net(kind="v2_ipv6", a="fd00::1", b="fd00::2")

SAMPLES: dict[str, tuple[str, Callable[[], bytes]]] = {}
"""File name: what it shows, and what makes its bytes."""


SAMPLES |= CASES


def sample(name: str, shows: str) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    def add(make: Callable[[], bytes]) -> Callable[[], bytes]:
        SAMPLES[name] = (shows, make)
        return make

    return add


def stamp(packets: list[bytes], step: int = 1000) -> list[Packet]:
    return [(START + index * step, data) for index, data in enumerate(packets)]


def data(net: Net, psn: int, *, name: str = "RC_SEND_ONLY", payload: bytes = b"rocelab!",
         headers: bytes = b"", **flags: int) -> bytes:  # fmt: skip
    flags.setdefault("ack", 1)
    return frame(net, "a", transport(name, B_QP, psn, headers, payload, **flags))


def ack(net: Net, psn: int, msn: int, syndrome: int = 0x1F) -> bytes:
    return frame(net, "b", transport("RC_ACKNOWLEDGE", A_QP, psn, aeth(syndrome, msn)))


def conversation(net: Net) -> list[bytes]:
    """A SEND, a WRITE of three packets, a READ of two, an atomic, each answered."""
    va, rkey = 0x7F0000001000, 0xABCD
    half = bytes(range(256))
    return [
        data(net, 100, payload=b"hello"),
        ack(net, 100, 1),
        data(net, 101, name="RC_RDMA_WRITE_FIRST", headers=reth(va, rkey, 515), payload=half,
             ack=0),
        data(net, 102, name="RC_RDMA_WRITE_MIDDLE", payload=half, ack=0),
        data(net, 103, name="RC_RDMA_WRITE_LAST", payload=b"end"),
        ack(net, 103, 2),
        data(net, 104, name="RC_RDMA_READ_REQUEST", headers=reth(va, rkey, 300), payload=b""),
        frame(net, "b", transport("RC_RDMA_READ_RESPONSE_FIRST", A_QP, 104, aeth(0x1F, 3), half)),
        frame(net, "b",
              transport("RC_RDMA_READ_RESPONSE_LAST", A_QP, 105, aeth(0x1F, 3), half[:44])),
        data(net, 106, name="RC_COMPARE_SWAP", headers=atomic(va, rkey, 7, 6), payload=b""),
        frame(net, "b", transport("RC_ATOMIC_ACKNOWLEDGE", A_QP, 106,
                                  aeth(0x1F, 4) + (6).to_bytes(8, "big"))),
    ]  # fmt: skip


for _kind, _net in (("v1", V1), ("v2-ipv4", V4), ("v2-ipv6", V6)):
    sample(f"rc-{_kind}.pcap", "SEND, WRITE, READ and atomic, each answered")(
        lambda net=_net: files.pcap(stamp(conversation(net)))
    )


@sample("rc-vlan.pcap", "one VLAN tag, then QinQ")
def _vlan() -> bytes:
    one, two = replace(V4, vlans=[7]), replace(V4, vlans=[100, 7])
    return files.pcap(stamp([data(one, 1), ack(one, 1, 1), data(two, 2), ack(two, 2, 2)]))


@sample("rc-v2-ipv4-options.pcap", "IPv4 with a router alert option")
def _options() -> bytes:
    net = replace(V4, options=b"\x94\x04\x00\x00")
    return files.pcap(stamp([data(net, 1), ack(net, 1, 1)]))


@sample("rc-v2-ipv6-extensions.pcap", "IPv6 with hop-by-hop and destination options")
def _extensions() -> bytes:
    net = replace(V6, extensions=[(0, b"\x05\x02\x00\x00\x01\x00"), (60, b"\x01\x04\0\0\0\0")])
    return files.pcap(stamp([data(net, 1), ack(net, 1, 1)]))


@sample("fragments.pcap", "RoCE in IP fragments: IPv4, IPv4 with another identification, IPv6")
def _fragments() -> bytes:
    packets = [part for one in conversation(V4) for part in fragments.cut(one, [8, 40])]
    for net, other in ((replace(V4, a="10.0.1.1"), True), (V6, False)):
        for one in conversation(net):
            first, *others = fragments.cut(one, [24], rewrite=other)
            packets += [*others, first]
    return files.pcap(stamp(packets))


@sample("raw-ip.pcap", "link type raw IP, µs, big-endian")
def _raw() -> bytes:
    packet = frame(V4, "a", transport("RC_SEND_ONLY", B_QP, 1, b"", b"abcd", ack=1), link=False)
    return files.pcap(stamp([packet]), nano=False, order=">", link=files.RAW)


@sample("sll.pcap", "Linux cooked v1")
def _sll() -> bytes:
    packet = frame(V4, "a", transport("RC_SEND_ONLY", B_QP, 1, b"", b"abcd", ack=1), link=False)
    head = struct.pack(">HHH8sH", 0, 1, 6, b"\x02\0\0\0\0\1\0\0", 0x0800)
    return files.pcap(stamp([head + packet]), link=files.SLL)


@sample("sll2.pcap", "Linux cooked v2")
def _sll2() -> bytes:
    packet = frame(V4, "a", transport("RC_SEND_ONLY", B_QP, 1, b"", b"abcd", ack=1), link=False)
    head = struct.pack(">HHIHBB8s", 0x0800, 0, 2, 1, 0, 6, b"\x02\0\0\0\0\1\0\0")
    return files.pcap(stamp([head + packet]), link=files.SLL2)


def native(net: Net | None) -> list[bytes]:
    """The packets of `conversation`, as native InfiniBand; `net` has the GIDs of a GRH."""
    packets = []
    for wire in conversation(V1):
        # Ethernet and GRH before, ICRC behind
        sender = "a" if wire[11] == 1 else "b"
        packets.append(infiniband.packet(sender, wire[54:-4], grh=net))
    return packets


@sample("infiniband.pcap", "native InfiniBand, as LINKTYPE_INFINIBAND")
def _infiniband() -> bytes:
    return files.pcap(stamp(native(None)), link=infiniband.LINK)


@sample("infiniband-erf.pcap", "ERF: InfiniBand by LID and GID, a wrong ICRC, RoCE on Ethernet")
def _erf() -> bytes:
    gids = Net(kind="v1", a="fe80::1", b="fe80::2", tclass=0x20)
    wrong = infiniband.packet(
        "a", transport("UD_SEND_ONLY", B_QP, 9, deth(7, A_QP), b"rocelab!"), crc=b"\1\2\3\4"
    )
    packets = [(infiniband.INFINIBAND, one) for one in [*native(None), *native(gids), wrong]]
    # with the FCS, as Endace's cards capture
    packets += [(infiniband.ETHERNET, one + bytes(4)) for one in (data(V4, 5), ack(V4, 5, 1))]
    records = [
        infiniband.record(kind, START + index * 1000, one, extensions=index % 3)
        for index, (kind, one) in enumerate(packets)
    ]
    return files.pcap(stamp(records), nano=False, link=infiniband.ERF)


@sample("sections.pcapng", "two sections, either byte order; 1e-6, 2^-20 s, an offset; comments")
def _sections() -> bytes:
    first, second = data(V4, 1), ack(V4, 1, 1)
    third = data(V4, 2)
    return b"".join([
        files.section("<"), files.interface(resolution=None),
        files.packet_block(START // 1000, first, comment="rocelab/1 node=n1 dev=rxe0"),
        files.section(">"), files.interface(resolution=0x80 | 20, order=">"),
        files.interface(resolution=9, order=">", offset=1_700_000_000),
        files.packet_block((1_700_000_000 << 20) + 100, second, order=">"),
        files.packet_block(500_000, third, number=1, order=">"),
    ])  # fmt: skip


@sample("rc-v2-ipv4.pcap.gz", "gzip")
def _gzip() -> bytes:
    return gzip.compress(files.pcap(stamp(conversation(V4))), mtime=0)


@sample("snapped.pcap", "frames cut to 70 bytes: headers only, ICRC not checkable")
def _snapped() -> bytes:
    return files.pcap(stamp(conversation(V4)), snap=70)


@sample("ud.pcap", "datagrams both ways, paired by their DETH")
def _ud() -> bytes:
    there = transport("UD_SEND_ONLY", B_QP, 5, deth(0x11111111, A_QP), b"ping")
    back = transport("UD_SEND_ONLY_WITH_IMMEDIATE", A_QP, 9,
                     deth(0x11111111, B_QP) + b"\0\0\0\7", b"pong")  # fmt: skip
    return files.pcap(stamp([frame(V4, "a", there), frame(V4, "b", back)]))


def mad(attribute: int, body: bytes) -> bytes:
    head = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 1, attribute, 0, 0)
    return (head + body).ljust(256, b"\0")


@sample("cm.pcap", "a CM request and reply pair the QPs before a one-sided SEND")
def _cm() -> bytes:
    request = struct.pack(">II8s8sIII", 0x51, 0, b"", b"", 0, 0, A_QP << 8)
    reply = struct.pack(">IIII", 0x52, 0x51, 0, B_QP << 8)
    gsi = deth(0x80010000, 1)
    packets = [
        frame(V4, "a", transport("UD_SEND_ONLY", 1, 0, gsi, mad(0x10, request))),
        frame(V4, "b", transport("UD_SEND_ONLY", 1, 0, gsi, mad(0x13, reply))),
        data(V4, 1), ack(V4, 1, 1),
    ]  # fmt: skip
    return files.pcap(stamp(packets))


def request(identity: int, port: int) -> bytes:
    """A REQ to a TCP port of the RDMA IP CM service, with the values of `rdma_connect`."""
    body = struct.pack(">II8s8sIII", identity, 0, struct.pack(">Q", 0x0106 << 16 | port), b"", 0, 0,
                       A_QP << 8 | 16) + struct.pack(
        ">IIIHBB", 8, 20 << 3, 100 << 8 | 20 << 3 | 7, 0xFFFF, 3 << 4 | 6, 15 << 4
    )  # fmt: skip
    body = body.ljust(95, b"\0") + bytes([18 << 3])
    return frame(V4, "a", transport("UD_SEND_ONLY", 1, 0, deth(0x80010000, 1), mad(0x10, body)))


@sample("cm-rejected.pcap", "nobody listens on the port; then a connection that is stale")
def _cm_rejected() -> bytes:
    packets = []
    for identity, reason in ((0x51, 8), (0x53, 10)):
        reject = struct.pack(">IIBBH", 0x60, identity, 0, 0, reason)
        answer = transport("UD_SEND_ONLY", 1, 0, deth(0x80010000, 1), mad(0x12, reject))
        packets += [request(identity, 18515), frame(V4, "b", answer)]
    return files.pcap(stamp(packets))


@sample("cm-unanswered.pcap", "a REQ that nobody answers, and its retries")
def _cm_unanswered() -> bytes:
    return files.pcap(stamp([request(0x51, 18515)] * 4, 4_000_000_000))


def management(side: str, attribute: int, *words: int, tail: bytes = b"") -> bytes:
    """A message of the CM that begins with these words."""
    body = struct.pack(f">{len(words)}I", *words) + tail
    return frame(
        V4, side, transport("UD_SEND_ONLY", 1, 0, deth(0x80010000, 1), mad(attribute, body))
    )


def connection_setup(resources: int) -> list[bytes]:
    """REQ, MRA, REP and RTU of a connection whose responder executes so many READs at a time."""
    return [
        request(0x51, 18515),
        management("b", 0x11, 0x52, 0x51, tail=bytes([0, 20 << 3])),
        management("b", 0x13, 0x52, 0x51, 0, B_QP << 8, 0, 0, tail=bytes([resources, 4])),
        management("a", 0x14, 0x51, 0x52),
    ]


@sample("cm-disconnected.pcap", "a connection from its REQ, with an MRA, to DREQ and DREP")
def _cm_disconnected() -> bytes:
    packets = [*connection_setup(16), data(V4, 100), ack(V4, 100, 1)]
    ended = [management("a", 0x15, 0x51, 0x52, B_QP << 8), management("b", 0x16, 0x52, 0x51)]
    return files.pcap(stamp([*packets, *ended]))


@sample("read-depth.pcap", "three READs at once; the responder's REP says two")
def _read_depth() -> bytes:
    reads = [
        data(V4, psn, name="RC_RDMA_READ_REQUEST", headers=reth(psn << 8, 7, 8), payload=b"")
        for psn in (100, 101, 102)
    ]
    answers = [
        transport("RC_RDMA_READ_RESPONSE_ONLY", A_QP, psn, aeth(0x1F, psn - 99), bytes(8))
        for psn in (100, 101, 102)
    ]
    return files.pcap(
        stamp([*connection_setup(2), *reads, *(frame(V4, "b", one) for one in answers)])
    )


@sample("migreq.pcap", "one end sets MigReq, the other does not")
def _migreq() -> bytes:
    packets = []
    for psn in (1, 2):
        answer = transport("RC_ACKNOWLEDGE", A_QP, psn, aeth(0x1F, psn), mig=0)
        packets += [data(V4, psn, mig=1), frame(V4, "b", answer)]
    return files.pcap(stamp(packets))


@sample("xrc.pcap", "XRC SEND and its acknowledgement")
def _xrc() -> bytes:
    send = transport("XRC_SEND_ONLY", B_QP, 1, struct.pack(">I", 77), b"abcd", ack=1)
    answer = transport("XRC_ACKNOWLEDGE", A_QP, 1, aeth(0x1F, 1))
    return files.pcap(stamp([frame(V4, "a", send), frame(V4, "b", answer)]))


@sample("flush.pcap", "FLUSH and ATOMIC WRITE")
def _flush() -> bytes:
    flush = transport("RC_FLUSH", B_QP, 1, struct.pack(">I", 1) + reth(1, 2, 64), ack=1)
    write = transport("RC_ATOMIC_WRITE", B_QP, 2, reth(1, 2, 8), b"8 bytes!", ack=1)
    answers = [
        transport("RC_RDMA_READ_RESPONSE_ONLY", A_QP, psn, aeth(0x1F, psn)) for psn in (1, 2)
    ]
    return files.pcap(stamp([frame(V4, "a", flush), frame(V4, "a", write)]
                            + [frame(V4, "b", answer) for answer in answers]))  # fmt: skip


@sample("cnp.pcap", "a CE mark and the congestion notification that it causes")
def _cnp() -> bytes:
    marked = replace(V4, tclass=26 << 2 | 3)
    cnp = transport("CNP", A_QP, 0, bytes(16), resv8a=0x40)
    return files.pcap(stamp([data(marked, 1), frame(V4, "b", cnp), ack(V4, 1, 1)]))


@sample("pfc.pcap", "priority flow control of classes 3 and 4, and an 802.3x PAUSE")
def _pfc() -> bytes:
    macs = b"\x01\x80\xc2\0\0\1" + b"\x02\0\0\0\0\1"
    pfc = macs + struct.pack(">HHH8H", 0x8808, 0x0101, 0x18, *[9] * 8)
    pause = macs + struct.pack(">HHH", 0x8808, 1, 0xFFFF)
    return files.pcap(stamp([pfc.ljust(60, b"\0"), pause.ljust(60, b"\0"), data(V4, 1)]))


@sample("unknown-opcode.pcap", "opcode 0x18 is counted, not guessed at")
def _unknown() -> bytes:
    return files.pcap(stamp([frame(V4, "a", frames.bth(0x18, B_QP, 1) + b"what?!!!")]))


def _bad(net: Net, make: Callable[[bytes, bytes, bytes, bytes], bytes]) -> bytes:
    """One SEND of 5 bytes (pad 3) whose ICRC `make` computes."""
    wire = transport("RC_SEND_ONLY", B_QP, 1, b"", b"hello", ack=1)
    network, udp, body = frames.layers(net, "a", wire)
    masked = pseudo_packet(net.kind, network, udp, body)
    return files.pcap(stamp([frame(net, "a", wire, crc=make(network, udp, body, masked))]))


def _little(crc: int) -> bytes:
    return crc.to_bytes(4, "little")


_TTL = replace(V4, ttl=63, tclass=0x68)
# ruff: noqa: ARG005 (n: network header, u: UDP, b: BTH to pad, m: all of it, masked)
_WRONG: dict[str, tuple[Net, str, Callable[[bytes, bytes, bytes, bytes], bytes]]] = {
    "zero": (_TTL, "zero", lambda n, u, b, m: bytes(4)),
    "byte-order": (_TTL, "with its bytes reversed", lambda n, u, b, m: _little(crc32(m))[::-1]),
    "dscp": (_TTL, "made with DSCP and ECN counted in",
             lambda n, u, b, m: _little(crc32(m[:9] + n[1:2] + m[10:]))),
    "ttl": (_TTL, "made with the TTL counted in",
            lambda n, u, b, m: _little(crc32(m[:16] + n[8:9] + m[17:]))),
    "ip-checksum": (_TTL, "made with the IP checksum counted in",
                    lambda n, u, b, m: _little(crc32(m[:18] + n[10:12] + m[20:]))),
    "udp-checksum": (_TTL, "made with the UDP checksum counted in",
                     lambda n, u, b, m: _little(crc32(m[:34] + u[6:8] + m[36:]))),
    "lrh": (_TTL, "made without the dummy LRH", lambda n, u, b, m: _little(crc32(m[8:]))),
    "pad": (_TTL, "made without the pad", lambda n, u, b, m: _little(crc32(m[:-3]))),
    "nothing-masked": (_TTL, "made without masking",
                       lambda n, u, b, m: _little(crc32(m[:8] + n + u + b))),
    "hop-limit": (V6, "made with the hop limit counted in",
                  lambda n, u, b, m: _little(crc32(m[:15] + n[7:8] + m[16:]))),
    "corrupted": (V1, "of other bytes",
                  lambda n, u, b, m: icrc("v1", n, u, b[:-1] + b"\x01")),
}  # fmt: skip

for _name, (_net, _how, _make) in _WRONG.items():
    sample(f"icrc-{_name}.pcap", f"an ICRC {_how}")(lambda net=_net, make=_make: _bad(net, make))


def _with_fault(kind: str) -> bytes:
    """The smallest seed whose plan has just this fault, seen by the tap's truth."""
    for seed in range(200):
        plan = schedule.plan(seed, faults=1, kinds=(kind,))
        index = next(iter(plan.faults))
        plan.packets = plan.packets[: index + 4]
        plan.packets[-1].ack = True
        if plan.mtu != 256 or plan.packets[-1].name.endswith(("FIRST", "MIDDLE")):
            continue
        wire = lossy_wire.Wire(plan)
        capture = wire.run()
        if len(capture) < 40 and (wire.truth.naks or wire.truth.rnr or kind == "duplicate"):
            return files.pcap(capture)
    raise RuntimeError(kind)


for _kind in ("drop_before", "drop_behind", "duplicate", "reorder", "corrupt", "rnr"):
    sample(f"fault-{_kind.replace('_', '-')}.pcap", f"one injected fault: {_kind}")(
        lambda kind=_kind: _with_fault(kind)
    )


@sample("timeout.pcap", "a SEND retransmitted without a NAK: the capture cannot tell what was lost")
def _timeout() -> bytes:
    late = [(START, data(V4, 1)), (START + 1000, ack(V4, 1, 1)), (START + 2000, data(V4, 2)),
            (START + 9_000_000, data(V4, 2)), (START + 9_001_000, ack(V4, 2, 2))]  # fmt: skip
    return files.pcap(late)


@sample("selective-repeat.pcap", "only the lost packet is retransmitted: not Go-Back-N")
def _selective() -> bytes:
    packets = [data(V4, 1, ack=0), data(V4, 3, ack=0), ack(V4, 2, 1, 0x60), data(V4, 2, ack=0),
               data(V4, 4), ack(V4, 4, 4)]  # fmt: skip
    return files.pcap(stamp(packets))


@sample("rnr-backoff.pcap", "a retransmission before the RNR timer expired")
def _backoff() -> bytes:
    packets = [data(V4, 1), ack(V4, 1, 0, 0x20 | 12), data(V4, 1), ack(V4, 1, 1)]
    return files.pcap(stamp(packets))


@sample("nak-repeated.pcap", "a second NAK before the first was answered")
def _repeated() -> bytes:
    nak = ack(V4, 2, 1, 0x60)
    packets = [data(V4, 1, ack=0), data(V4, 3, ack=0), nak, data(V4, 4, ack=0), nak,
               data(V4, 2, ack=0), data(V4, 3, ack=0), data(V4, 4), ack(V4, 4, 4)]  # fmt: skip
    return files.pcap(stamp(packets))


@sample("msn.pcap", "an MSN that skips a message")
def _msn() -> bytes:
    packets: list[bytes] = []
    for psn, msn in ((1, 1), (2, 2), (3, 4)):
        packets += [data(V4, psn), ack(V4, psn, msn)]
    return files.pcap(stamp(packets))


@sample("malformed-sequence.pcap", "MIDDLE without FIRST, a short MIDDLE, and a wrong RETH length")
def _sequence() -> bytes:
    page = bytes(256)
    packets = [
        data(V4, 1), ack(V4, 1, 1),
        data(V4, 2, name="RC_SEND_MIDDLE", payload=page, ack=0),
        data(V4, 3, name="RC_SEND_FIRST", payload=page, ack=0),
        data(V4, 4, name="RC_SEND_MIDDLE", payload=page[:128], ack=0),
        data(V4, 5, name="RC_SEND_LAST", payload=b"last"),
        data(V4, 6, name="RC_RDMA_WRITE_ONLY", headers=reth(1, 2, 99), payload=b"four"),
    ]  # fmt: skip
    return files.pcap(stamp(packets))


@sample("pkey.pcap", "P_Key 0 and reserved bits")
def _pkey() -> bytes:
    return files.pcap(stamp([data(V4, 1, pkey=0), data(V4, 2, resv8a=0x01, resv7=0x02)]))


def response(name: str, psn: int, payload: bytes = bytes(256)) -> bytes:
    head = b"" if name == "MIDDLE" else aeth(0x1F, 1)
    return frame(V4, "b", transport(f"RC_RDMA_READ_RESPONSE_{name}", A_QP, psn, head, payload))


def read(psn: int, va: int, size: int) -> bytes:
    return data(V4, psn, name="RC_RDMA_READ_REQUEST", headers=reth(va, 2, size), payload=b"")


def _reissue_from(va: int) -> bytes:
    """The second of three responses is lost; the READ is reissued from there, for `va`."""
    return files.pcap(stamp([read(1, 0x1000, 768), response("FIRST", 1), response("LAST", 3),
                             read(2, va, 512), response("FIRST", 2),
                             response("LAST", 3)]))  # fmt: skip


@sample("read-reissued.pcap", "a READ reissued from its middle, lawfully")
def _reissue() -> bytes:
    return _reissue_from(0x1100)


@sample("read-reissue.pcap", "a READ reissued from its middle, for another address")
def _breach() -> bytes:
    return _reissue_from(0x1200)


@sample("read-replay.pcap", "READ responses repeated that no READ requested again")
def _replay() -> bytes:
    answers = [response("FIRST", 1), response("LAST", 2)]
    return files.pcap(stamp([read(1, 0x1000, 512), *answers, *answers, data(V4, 3),
                             ack(V4, 3, 2)]))  # fmt: skip


@sample("ack-unsent.pcap", "an ACK before its request was sent")
def _unsent() -> bytes:
    return files.pcap(stamp([data(V4, 1), ack(V4, 1, 1), ack(V4, 2, 2), data(V4, 2),
                             ack(V4, 2, 2)]))  # fmt: skip


@sample("ack-regress.pcap", "an ACK of less than the one before it")
def _regress() -> bytes:
    return files.pcap(stamp([data(V4, 1), ack(V4, 1, 1), data(V4, 2), data(V4, 3), ack(V4, 3, 3),
                             ack(V4, 2, 2)]))  # fmt: skip


@sample("nak-psn.pcap", "a NAK for what was acknowledged before")
def _nak_psn() -> bytes:
    return files.pcap(stamp([data(V4, 1), ack(V4, 1, 1), data(V4, 2), ack(V4, 2, 2),
                             ack(V4, 1, 2, 0x60), data(V4, 3), ack(V4, 3, 3)]))  # fmt: skip


@sample("retransmit-start.pcap", "after a NAK for PSN 2, retransmission starts at PSN 1")
def _start() -> bytes:
    packets = [data(V4, 1, ack=0), data(V4, 3, ack=0), ack(V4, 2, 1, 0x60),
               data(V4, 1, ack=0), data(V4, 2, ack=0), data(V4, 3), ack(V4, 3, 3)]  # fmt: skip
    return files.pcap(stamp(packets))


@sample("qpn-reuse.pcap", "another connection takes over a QP number: PSNs far apart")
def _reuse() -> bytes:
    return files.pcap(stamp([data(V4, 1), ack(V4, 1, 1), data(V4, 0x500000),
                             ack(V4, 0x500000, 1)]))  # fmt: skip


@sample("length.pcap", "an IP length that goes beyond the UDP length")
def _length() -> bytes:
    wire = transport("RC_SEND_ONLY", B_QP, 1, b"", b"rocelab!", ack=1)
    network = frames.layers(V4, "a", wire + bytes(4))[0]
    right = frames.layers(V4, "a", wire)[1]
    packet = network + right + wire + icrc(V4.kind, network, right, wire) + bytes(4)
    return files.pcap(stamp([frames.ethernet(V4, V4.address("a"), V4.address("b"), packet)]))


@sample("bth-version.pcap", "transport header version 1")
def _version() -> bytes:
    return files.pcap(stamp([data(V4, 1, tver=1), ack(V4, 1, 1)]))


@sample(
    "cnp-format.pcap", "CNPs of devices: without BECN, with data, without the 16 bytes, over v1"
)
def _cnp_format() -> bytes:
    becn = 0x40
    marked = replace(V4, tclass=26 << 2 | 3)
    padded = transport("CNP", A_QP, 0, bytes(range(16)), resv8a=becn)
    short = frames.bth(0x81, A_QP, 0, resv8a=becn)
    cnps = [
        frame(V4, "b", transport("CNP", A_QP, 0, bytes(16))),
        frame(V4, "b", padded),
        frame(V4, "b", short),
        frame(V1, "b", transport("CNP", A_QP, 0, bytes(16), resv8a=becn)),
    ]
    return files.pcap(stamp([data(marked, 1), *cnps, ack(V4, 1, 1)]))


@sample("udp-source-port.pcap", "a QP changes its UDP source port")
def _port() -> bytes:
    other = replace(V4, sport=50000)
    return files.pcap(stamp([data(V4, 1), ack(V4, 1, 1), data(other, 2), ack(V4, 2, 2)]))


@sample("cut.pcap", "ends within a record")
def _cut() -> bytes:
    return files.pcap(stamp(conversation(V4)))[:-20]


@sample("retry-exceeded.pcap", "a packet that is sent four times, and never acknowledged")
def _retry_exceeded() -> bytes:
    packets = stamp([data(V4, 1), ack(V4, 1, 1)])
    tries = [(START + 10**6 * (1 << at), data(V4, 2, payload=bytes(64))) for at in range(4)]
    return files.pcap([*packets, *tries])


@sample("one-sided.pcap", "only the requester's packets were captured")
def _one_sided() -> bytes:
    return files.pcap(stamp([data(V4, psn) for psn in (0xFFFFFE, 0xFFFFFF, 0, 1)]))
