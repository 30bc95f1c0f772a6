# SPDX-License-Identifier: GPL-2.0-or-later
"""The proof of transport, and the frame counts and counters that it uses."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frames_counted import count_frames
from rocelab.errors import CellError
from rocelab.measure import counters
from rocelab.measure.counters import Counters
from rocelab.measure.transport_proof import RENDEZVOUS_BYTES, Proof, check_probe, prove
from rocelab.plans.benchmarks.tool import Measurement
from rocelab.plans.catalog import TRANSPORTS, Transport
from rocelab.record import frames
from rocelab.record.faults_document import UNALTERED, Altered
from rocelab.record.frames import Frames
from rocelab.record.rxestat_document import Stages
from rocelab.testbed.verbs_ports import VerbsPort

V1 = Transport("rxe-v1", "verbs", roce=1, gid_type="IB/RoCE v1")
V2, TCP = TRANSPORTS["rxe-v2"], TRANSPORTS["tcp"]
COUNTS = st.integers(1, 10**9)


def moved(sent: tuple[int, int], received: tuple[int, int]) -> dict[str, Counters]:
    return {
        f"n{i + 1}": Counters({"sent_pkts": sent[i], "rcvd_pkts": received[i]}, {}) for i in (0, 1)
    }


def roce(transport: Transport, sent: tuple[int, int], data: int, payload: int) -> Frames:
    total = sum(sent)
    counts = Frames(frames=total, roce_data=data, roce_payload_bytes=payload)
    return replace(counts, **{f"roce_v{transport.roce}": total})


@given(st.sampled_from([V1, V2]), COUNTS, COUNTS, COUNTS, st.integers(0, RENDEZVOUS_BYTES))
def test_a_clean_roce_step_is_proven(
    transport: Transport, a: int, b: int, size: int, rendezvous: int
) -> None:
    seen = replace(roce(transport, (a, b), a, a * size), tcp_payload_bytes=rendezvous)
    verdict = prove(transport, moved((a, b), (b, a)), seen, Measurement((), a * size, messages=a))
    assert verdict.ok, verdict.failures()


def test_a_users_program_may_use_tcp_for_less_than_roce_carries() -> None:
    a, payload = 1000, 10 * RENDEZVOUS_BYTES
    measured, counted = Measurement((), 0), moved((a, a), (a, a))
    for over_tcp, own_tcp, proven in (
        (payload, True, True),
        (payload + 1, True, False),
        (payload, False, False),
    ):
        seen = replace(roce(V2, (a, a), a, payload), tcp_payload_bytes=over_tcp)
        assert prove(V2, counted, seen, measured, own_tcp=own_tcp).ok is proven


def test_a_program_may_part_while_packets_are_under_way() -> None:
    """The driver counts exactly those as dropped; a benchmark of ours waits for its last answer."""
    a, measured = 1000, Measurement((), 0)
    seen = roce(V2, (a, a), a, a)
    for dropped, parts_early, proven in ((3, True, True), (2, True, False), (3, False, False)):
        counted = moved((a, a), (a, a - 3))
        counted["n2"].rxe["rcvd_drops"] = dropped
        assert prove(V2, counted, seen, measured, parts_early=parts_early).ok is proven


@given(COUNTS, COUNTS, st.data())
def test_any_count_off_by_one_disproves_roce(a: int, b: int, data: st.DataObject) -> None:
    """Each injected fault alone changes the result, so every condition counts."""
    seen = roce(V2, (a, b), a, a * 64)
    measured = Measurement((), a * 64, messages=a)
    counted = moved((a, b), (b, a))
    faults = {
        # traffic that rxe looped back: counted by the driver, but not on the wire
        "loopback": lambda: (moved((a + 1, b), (b, a + 1)), seen),
        "lost frame": lambda: (counted, replace(seen, roce_v2=seen.roce_v2 - 1)),
        "stranger's frame": lambda: (counted, replace(seen, roce_v2=seen.roce_v2 + 1)),
        "not received": lambda: (moved((a, b), (b, a - 1)), seen),
        "one end is silent": lambda: (moved((a + b, 0), (b, a)), seen),
        "the other version": lambda: (counted, replace(seen, roce_v1=1)),
        "carried by TCP": lambda: (counted, replace(seen, tcp_payload_bytes=RENDEZVOUS_BYTES + 1)),
        "too few bytes": lambda: (counted, replace(seen, roce_payload_bytes=a * 64 - 1)),
        "too few packets": lambda: (counted, replace(seen, roce_data=a - 1)),
        "undecoded": lambda: (counted, replace(seen, undecoded=1)),
    }
    fault = data.draw(st.sampled_from(sorted(faults)))
    counts, on_wire = faults[fault]()
    verdict = prove(V2, counts, on_wire, measured)
    assert not verdict.ok, fault
    assert verdict.failures()
    assert prove(V2, counted, seen, measured).ok


@given(COUNTS, COUNTS, st.integers(1, 20), st.integers(0, 40))
def test_a_busy_capture_may_lack_what_it_says_it_lost(a: int, b: int, lost: int, gone: int) -> None:
    """The counters prove the rest: they must still agree with each other."""
    a, b = a + 2000, b + 2000
    seen = roce(V2, (a, b), a - gone, (a - gone) * 64)
    seen = replace(seen, roce_v2=seen.roce_v2 - gone, frames=seen.frames - gone)
    measured = Measurement((), a * 64, messages=a)
    verdict = prove(V2, moved((a, b), (b, a)), seen, measured, lost=lost)
    assert verdict.ok == (gone <= lost), verdict.failures()
    assert not prove(V2, moved((a, b), (b, a - 1)), seen, measured, lost=lost).ok
    assert not prove(V2, moved((a, b), (b, a)), replace(seen, roce_v1=1), measured, lost=lost).ok


def test_a_capture_that_lost_too_much_proves_nothing() -> None:
    seen, counted = roce(V2, (900, 900), 900, 900 * 64), moved((900, 900), (900, 900))
    measured = Measurement((), 900 * 64, messages=900)
    assert prove(V2, counted, seen, measured, lost=19).ok
    assert "capture lost is 20" in prove(V2, counted, seen, measured, lost=20).failures()
    tcp = Frames(frames=500, tcp=500, tcp_data=500, tcp_payload_bytes=10**6)
    silent = moved((0, 0), (0, 0))
    assert prove(TCP, silent, tcp, Measurement((), 10**6 + 65535), lost=1).ok
    assert not prove(TCP, silent, tcp, Measurement((), 10**6 + 65536), lost=1).ok
    assert not prove(TCP, silent, tcp, Measurement((), 10**6), lost=7).ok


@given(COUNTS, st.integers(0, 10**6))
def test_tcp_is_proven_only_when_rxe_was_idle(payload: int, more: int) -> None:
    still = moved((0, 0), (0, 0))
    seen = Frames(tcp=9, tcp_data=5, tcp_payload_bytes=payload + more)
    measured = Measurement((), payload)
    assert prove(TCP, still, seen, measured).ok
    assert prove(TCP, {"n1": Counters({}, {}), "n2": Counters({}, {})}, seen, measured).ok
    assert not prove(TCP, moved((1, 0), (0, 0)), seen, measured).ok
    assert not prove(TCP, moved((0, 0), (0, 1)), seen, measured).ok
    assert not prove(TCP, still, replace(seen, roce_v1=1), measured).ok
    assert not prove(TCP, still, replace(seen, roce_v2=1), measured).ok
    assert not prove(TCP, still, replace(seen, tcp_payload_bytes=payload - 1), measured).ok


def uncaptured(name: str, payload: int) -> dict[str, Counters]:
    """What nodes count that send so many bytes; nothing of it is seen on the wire."""
    half = {"tx_packets": 9, "rx_packets": 9, "tx_bytes": payload // 2 + 1}
    device = {"port.port_xmit_data": payload // 8 + 1, "port.port_xmit_packets": 9}
    device |= {"port.port_rcv_packets": 9}
    if TRANSPORTS[name].family == "tcp":
        return {node: Counters({}, half, tcp={"OutSegs": 9}) for node in ("n1", "n2")}
    return {node: Counters({}, {}, adapter=device) for node in ("n1", "n2")}


@pytest.mark.parametrize(
    ("name", "group", "counter"),
    [
        ("tcp", "netdev", "tx_bytes"),
        ("tcp", "netdev", "rx_packets"),
        ("tcp", "tcp", "OutSegs"),
        ("ipoib", "netdev", "tx_bytes"),
        ("hw-v2", "adapter", "port.port_xmit_packets"),
        ("hw-v1", "adapter", "port.port_xmit_data"),
        ("ib", "adapter", "port.port_rcv_packets"),
    ],
)
def test_each_counter_alone_can_disprove_what_nothing_captured(
    name: str, group: str, counter: str
) -> None:
    measured = Measurement((), 4096, messages=4)
    counts = uncaptured(name, 4096)
    verdict = prove(TRANSPORTS[name], counts, None, measured)
    assert verdict.ok, verdict.failures()
    still = {
        node: replace(each, **{group: {**getattr(each, group), counter: 0}})
        for node, each in counts.items()
    }
    assert not prove(TRANSPORTS[name], still, None, measured).ok


def test_rxe_is_never_proven_without_a_capture() -> None:
    assert not prove(V2, moved((9, 9), (9, 9)), None, Measurement((), 64, messages=9)).ok


def test_rxe_must_be_idle_where_nothing_captured_tcp() -> None:
    counts = uncaptured("tcp", 64)
    assert prove(TCP, counts, None, Measurement((), 64)).ok
    counts["n1"] = replace(counts["n1"], rxe={"sent_pkts": 1})
    assert not prove(TCP, counts, None, Measurement((), 64)).ok


def test_no_traffic_is_no_proof() -> None:
    silent = moved((0, 0), (0, 0))
    assert not prove(V2, silent, Frames(), Measurement((), 0)).ok
    assert not prove(TCP, silent, Frames(), Measurement((), 0)).ok


@given(COUNTS, COUNTS, st.integers(0, 5), st.integers(-7, 7))
def test_a_probe_may_miss_only_records_that_it_reports_lost(
    a: int, b: int, lost: int, off: int
) -> None:
    seen = Stages({}, {("tx", "SEND"): (a + off, 0), ("rx", "ACKNOWLEDGE"): (b, 0)}, lost, None)
    tx, rx = check_probe("n1", seen, Counters({"sent_pkts": a, "rcvd_pkts": b}, {}))
    assert rx.ok
    assert tx.ok == (max(0, a - lost) <= a + off <= a)


# --- frames: written by hand from the specifications, never by the code under test ---


def ethernet(ethertype: int, payload: bytes, *, vlan: bool = False) -> bytes:
    tag = struct.pack("!HH", 0x8100, 5) if vlan else b""
    return b"\x02" * 6 + b"\x04" * 6 + tag + struct.pack("!H", ethertype) + payload


def ipv4(protocol: int, payload: bytes, *, options: bytes = b"", fragment: int = 0) -> bytes:
    words = 5 + len(options) // 4
    head = struct.pack(
        "!BBHHHBBH", 0x40 | words, 0, words * 4 + len(payload), 1, fragment, 64, protocol, 0
    )
    ends = IPv4Address("10.0.0.1").packed + IPv4Address("10.0.0.2").packed
    return head + ends + options + payload


def ipv6(protocol: int, payload: bytes) -> bytes:
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + b"\1" * 32 + payload


def udp(payload: bytes, port: int = 4791) -> bytes:
    return struct.pack("!HHHH", 49152, port, 8 + len(payload), 0) + payload


def tcp(payload: bytes, options: bytes = b"\1" * 12) -> bytes:
    words = 5 + len(options) // 4
    return struct.pack("!HHIIBBHHH", 1, 2, 3, 4, words << 4, 16, 5, 6, 7) + options + payload


def bth(opcode: int, extended: int, payload: bytes) -> bytes:
    pad = -len(payload) % 4
    head = struct.pack("!BBHII", opcode, 0x40 | pad << 4, 0xFFFF, 17, 4711)
    return head + b"\5" * extended + payload + b"\0" * pad + b"\6" * 4


def grh(payload: bytes) -> bytes:
    return struct.pack("!IHBB", 6 << 28, len(payload), 0x1B, 64) + b"\1" * 32 + payload


# opcode, extended header bytes, whether it carries or begins a message: IBA volume 1, chapter 9.2
OPCODES = [
    ("RC SEND first", 0x00, 0, True),
    ("RC SEND only", 0x04, 0, True),
    ("RC SEND only with immediate", 0x05, 4, True),
    ("RC WRITE first", 0x06, 16, True),
    ("RC WRITE middle", 0x07, 0, True),
    ("RC WRITE only", 0x0A, 16, True),
    ("RC WRITE only with immediate", 0x0B, 20, True),
    ("RC READ request", 0x0C, 16, False),
    ("RC READ response only", 0x10, 4, True),
    ("RC READ response middle", 0x0E, 0, True),
    ("RC acknowledge", 0x11, 4, False),
    ("RC atomic acknowledge", 0x12, 12, False),
    ("RC fetch and add", 0x14, 28, True),
    ("UC SEND only", 0x24, 0, True),
    ("UD SEND only", 0x64, 8, True),
    ("UD SEND only with immediate", 0x65, 12, True),
]


@pytest.mark.parametrize(("name", "opcode", "extended", "data"), OPCODES)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 1024])
def test_payload_by_opcode(name: str, opcode: int, extended: int, data: bool, length: int) -> None:
    if not data:
        length = 0
    packet = bth(opcode, extended, b"\7" * length)
    for whole, version in (
        (ethernet(0x0800, ipv4(17, udp(packet))), "roce_v2"),
        (ethernet(0x0800, ipv4(17, udp(packet), options=b"\1" * 8)), "roce_v2"),
        (ethernet(0x86DD, ipv6(17, udp(packet))), "roce_v2"),
        (ethernet(0x8915, grh(packet)), "roce_v1"),
        (ethernet(0x8915, grh(packet), vlan=True), "roce_v1"),
    ):
        counts = count_frames(whole)
        assert getattr(counts, version) == 1
        assert counts.roce_v1 + counts.roce_v2 == 1
        assert counts.roce_data == (1 if data else 0)
        assert counts.roce_payload_bytes == length
        assert counts.roce_data_bytes == (len(whole) if data else 0)
        assert counts.undecoded == 0


def test_tcp_and_other_frames() -> None:
    counts = count_frames(
        ethernet(0x0800, ipv4(6, tcp(b"x" * 100))),
        ethernet(0x86DD, ipv6(6, tcp(b"x" * 10, options=b""))),
        ethernet(0x0800, ipv4(6, tcp(b""))) + b"\0" * 6,  # an ACK, with Ethernet's own padding
        ethernet(0x0800, ipv4(17, udp(b"x" * 8, port=53))),
        ethernet(0x0806, b"\0" * 28),
        ethernet(0x0800, ipv4(17, b"x" * 20, fragment=0x2005)),  # a later fragment
    )
    assert (counts.tcp, counts.tcp_data, counts.tcp_payload_bytes) == (3, 2, 110)
    assert counts.tcp_data_bytes == 14 + 20 + 32 + 100 + 14 + 40 + 20 + 10
    assert (counts.other, counts.frames, counts.undecoded) == (3, 6, 0)


def test_a_truncated_frame_counts_with_its_length_on_the_link() -> None:
    whole = ethernet(0x0800, ipv4(6, tcp(b"x" * 1000)))
    counts = count_frames(whole, captured=128)
    assert (counts.tcp_payload_bytes, counts.tcp_data_bytes, counts.bytes) == (1000, 1066, 1066)


@given(st.binary(max_size=120))
def test_any_bytes_are_counted_once(packet: bytes) -> None:
    counts = count_frames(packet)
    kinds = counts.roce_v1 + counts.roce_v2 + counts.tcp + counts.other
    assert counts.frames == 1
    assert kinds + counts.undecoded >= 1
    assert counts.roce_payload_bytes >= 0


def pcap(packets: list[bytes], *, order: str = "<", magic: int = 0xA1B2C3D4) -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack(f"{order}IIII", 1, 2, len(p), len(p)) + p for p in packets)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_files_of_either_byte_order_and_resolution(tmp_path: Path, order: str, magic: int) -> None:
    path = tmp_path / "wire.pcap"
    packet = ethernet(0x8915, grh(bth(0x04, 0, b"x" * 64)))
    path.write_bytes(pcap([packet] * 3, order=order, magic=magic))
    counts = frames.count(path)
    assert (counts.frames, counts.roce_v1, counts.roce_payload_bytes) == (3, 3, 192)


@given(st.binary(max_size=200))
def test_broken_files_are_refused_or_counted(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("p") / "wire.pcap"
    for content in (junk, pcap([]) + junk):
        path.write_bytes(content)
        with contextlib.suppress(CellError):  # anything else is a bug
            frames.count(path)


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wire.pcap"
    path.write_bytes(pcap([ethernet(0x0806, b"\0" * 28)])[:-1])
    with pytest.raises(CellError, match="within a record"):
        frames.count(path)
    path.write_bytes(pcap([])[:20] + struct.pack("<I", 113) + pcap([b"x"])[24:])
    with pytest.raises(CellError, match="link type is 113"):
        frames.count(path)
    with pytest.raises(CellError, match=r"none\.pcap"):
        frames.count(tmp_path / "none.pcap")


# --- counters ---


LISTING = """\
/sys/class/net/data0/statistics/rx_packets:120
/sys/class/net/data0/statistics/tx_bytes:18446744073709551615
/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts:12
/sys/class/infiniband/rxe0/ports/1/hw_counters/lifespan:10
grep: something: Invalid argument
/sys/class/infiniband/rxe0/ports/1/hw_counters/odd:not a number
"""


def test_counters_are_read_by_name() -> None:
    values = counters.parse(LISTING)
    assert values.rxe == {"sent_pkts": 12}
    assert values.netdev == {"rx_packets": 120, "tx_bytes": 2**64 - 1}


def test_the_command_names_the_devices_files() -> None:
    assert counters.command("data0", None)[-1] == "/sys/class/net/data0/statistics"
    assert counters.command("data0", VerbsPort("rxe0", 1))[-2:] == (
        "/sys/class/infiniband/rxe0/ports/1/hw_counters",
        "/sys/class/infiniband/rxe0/ports/1/counters",
    )


def test_a_decreasing_counter_is_an_error() -> None:
    before, after = Counters({"sent_pkts": 5}, {}), Counters({"sent_pkts": 4}, {})
    assert before.since(Counters({"sent_pkts": 1}, {})).rxe == {"sent_pkts": 4}
    with pytest.raises(CellError, match="sent_pkts decreased by 1"):
        after.since(before)


def test_only_packets_dropped_by_a_qdisc_may_be_missing() -> None:
    """Two of the three dropped packets were RoCE: 98 of 100 frames on the wire, 98 received."""

    def judged(
        frames_seen: int, received: int, dropped: int, altered: Altered = UNALTERED
    ) -> Proof:
        moved = {
            "n1": Counters({"sent_pkts": 60, "rcvd_pkts": received - 40}, {}, {"dropped": dropped}),
            "n2": Counters({"sent_pkts": 40, "rcvd_pkts": 40}, {}, {"dropped": 0}),
        }
        seen = Frames(roce_v2=frames_seen, roce_data=50, roce_payload_bytes=100)
        measured = Measurement((), 100, 50)
        return prove(TRANSPORTS["rxe-v2"], moved, seen, measured, altered=altered)

    assert judged(98, 98, 3).ok
    behind = Altered(received=-5, spoilt=5)
    assert judged(98, 93, 3, behind).ok
    assert not judged(98, 98, 3, behind).ok, "a fault dropped five of them"
    before = Altered(received=-5, on_wire=-5)
    assert judged(93, 93, 3, before).ok
    assert not judged(93, 88, 3, before).ok
    assert not judged(96, 96, 3).ok
    assert not judged(98, 98, 0).ok
    assert not judged(98, 97, 3).ok, "what was on the wire arrived"
    assert not judged(101, 101, 3).ok


def test_ranks_on_one_machine_may_connect_to_themselves() -> None:
    """The driver sends and receives those packets, but only the messages cross the wire."""
    moved = {node: Counters({"sent_pkts": 50, "rcvd_pkts": 50}, {}, {}) for node in ("n1", "n2")}

    def judged(frames_seen: int, data: int, max_loopback: int) -> Proof:
        seen = Frames(roce_v2=frames_seen, roce_data=data, roce_payload_bytes=1000)
        measured = Measurement((), 1000, 40)
        return prove(TRANSPORTS["rxe-v2"], moved, seen, measured, max_loopback=max_loopback)

    assert judged(86, 45, 64).ok
    assert not judged(86, 45, 0).ok
    assert not judged(30, 45, 64).ok
    assert not judged(86, 39, 64).ok


def segment(source: int, destination: int) -> bytes:
    """A segment with 100 bytes of payload."""
    header = struct.pack(">HHIIBBHHH", source, destination, 1, 1, 5 << 4, 24, 512, 0, 0)
    return ethernet(0x0800, ipv4(6, header + b"x" * 100))


def test_control_connections_are_not_the_benchmark(tmp_path: Path) -> None:
    """SSH and mpirun's daemons may share the data link."""
    path = tmp_path / "wire.pcap"
    path.write_bytes(pcap([segment(40000, 22), segment(5001, 40001), segment(40001, 5001)]))
    counts = frames.count(path, control_ports={22})
    assert (counts.control, counts.control_payload_bytes) == (1, 100)
    assert (counts.tcp, counts.tcp_payload_bytes) == (2, 200)
    assert frames.count(path).tcp == 3


def test_congestion_notifications_are_decoded() -> None:
    """They belong to RoCE, carry no message, and are nothing strange."""
    counts = frames.count(Path(__file__).parents[3] / "captures" / "cnp.pcap")
    assert counts.undecoded == 0
    assert 0 < counts.roce_data < counts.roce_v2
