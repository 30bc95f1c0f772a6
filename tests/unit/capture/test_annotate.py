# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab annotate` adds what the analysis and the drivers say, and keeps all input."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
import pytest

from corpus import CAPTURES, SAMPLES, files, frames, lossy_wire, schedule
from pcapng_blocks import ENHANCED, SECTION, SIMPLE, Block, blocks, packets
from rocelab import capture
from rocelab.capture.annotate import Options, annotate
from rocelab.capture.verdict import comments
from two_drivers import schedule as two_drivers

RETRANSMISSIONS = (
    "after_nak", "after_rnr", "after_response_gap", "after_timeout", "spurious", "ambiguous",
)  # fmt: skip
Words = list[tuple[str, str]]


def ours(block: Block) -> list[str]:
    return [value.decode() for code, value in block.options if value.startswith(b"rocelab/1 ")]


def words(text: str) -> Words:
    pairs = (word.partition("=") for word in text.split(" ")[1:])
    return [(key, unquote(value)) for key, _, value in pairs]


def verdicts(path: Path) -> dict[int, Words]:
    """The analyzer's comment on each frame, by frame number."""
    by_packet = {}
    for number, block in enumerate(packets(path.read_bytes()), 1):
        mine = [text for text in ours(block) if " node=" not in text]
        assert len(mine) <= 1
        if mine:
            by_packet[number] = words(mine[0])
    return by_packet


def value_of(by_packet: dict[int, Words], key: str) -> dict[int, str]:
    return {number: value for number, pairs in by_packet.items() for k, value in pairs if k == key}


def check_against_analysis(source: Path, made: Path, report: dict[str, Any]) -> None:
    """Check that statuses, findings and messages equal those of `rocelab analyze`."""
    analysis = capture.read(str(source), options=capture.Options(max_findings=100_000))
    by_packet = verdicts(made)
    sums: Counter[str] = Counter()
    for connection in analysis.result["connections"]:
        for row in connection["directions"]:
            for cause in RETRANSMISSIONS:
                sums[f"retransmission_{cause}"] += row["retransmissions"][cause]
            sums["duplicate"] += row["duplicates"]
            sums["out_of_order"] += row["out_of_order"]
            sums["gaps"] += row["gaps"]
            sums["nak"] += sum(row["naks"].values())
            sums["rnr_nak"] += row["rnr"]
    statuses = Counter(value_of(by_packet, "psn_status").values())
    assert statuses == Counter(report["psn_status"])
    gaps = statuses["gap"] + statuses["answer_gap"]
    told = {**statuses, "gaps": gaps}
    assert {key: told.get(key, 0) for key in sums} == dict(sums)

    expected = Counter(
        (row["packet"], f"{row['severity']} {row['rule']}"
         f"{' ambiguous' if row['ambiguous'] else ''}: {row['detail']}"[:520])
        for row in analysis.result["findings"] if row["packet"]
    )  # fmt: skip
    written = Counter(
        (number, value[:520])
        for number, pairs in by_packet.items() for key, value in pairs if key == "finding"
    )  # fmt: skip
    assert written == expected
    assert report["findings"] == sum(expected.values())

    assert analysis.messages is not None
    table = pl.DataFrame(analysis.messages)
    whole = {f"{a}..{b}": n for a, b, n in
             table.select("first_packet", "last_packet", "packets").iter_rows()}  # fmt: skip
    shown = Counter(value_of(by_packet, "message").values())
    # whether a message comes to nothing is not known yet where its packets are
    fails = any(row["rule"] in {"retry-exceeded", "nak"} for row in analysis.result["findings"])
    assert shown == Counter(whole) or (fails and shown > Counter(whole))
    assert report["late"] == 0


@pytest.mark.parametrize("name", SAMPLES)
def test_the_corpus(name: str, tmp_path: Path) -> None:
    made = tmp_path / "made.pcapng"
    report = annotate(CAPTURES / name, [], made)
    check_against_analysis(CAPTURES / name, made, report)


@pytest.mark.parametrize("fault", schedule.FAULTS)
def test_every_injected_fault(fault: str, tmp_path: Path) -> None:
    """In seeded connections each status is where the analyzer says, as often as it counts."""
    source, made = tmp_path / "source.pcap", tmp_path / "made.pcapng"
    seen: set[str] = set()
    for seed in range(8):
        plan = schedule.plan(seed, kinds=(fault,), services=("RC", "XRC"))
        source.write_bytes(files.pcap(lossy_wire.Wire(plan).run()))
        report = annotate(source, [], made)
        check_against_analysis(source, made, report)
        seen |= set(report["psn_status"])
    wanted = {
        "drop_before": {"gap", "nak", "retransmission_after_nak"},
        "drop_behind": {"nak", "retransmission_after_nak"},
        "duplicate": {"duplicate"},
        "reorder": {"gap"},
        "corrupt": {"corrupt", "retransmission_after_nak"},
        "rnr": {"rnr_nak", "retransmission_after_rnr"},
    }
    assert wanted.get(fault, {"new", "answer"}) <= seen


def test_a_response_names_its_request(tmp_path: Path) -> None:
    """It gives the request's frame number and the time since, unless the request is repeated."""
    source, made = tmp_path / "source.pcap", tmp_path / "made.pcapng"
    links = 0
    for seed in range(20):
        plan = schedule.plan(seed, services=("RC",))
        captured = lossy_wire.Wire(plan).run()
        source.write_bytes(files.pcap(captured))
        annotate(source, [], made)
        by_packet = verdicts(made)
        statuses = value_of(by_packet, "psn_status")
        spans = {packet.psn: packet.span for packet in plan.packets}
        rows = pl.DataFrame(capture.read(str(source)).packets)
        psn = dict(rows.select("packet", "psn").iter_rows())
        again = {psn[number] for number, word in statuses.items()
                 if word.startswith("retransmission") or word == "duplicate"}  # fmt: skip
        for number, to in value_of(by_packet, "response_to").items():
            request = int(to)
            ns = int(dict(by_packet[number])["response_ns"])
            assert ns == captured[number - 1][0] - captured[request - 1][0]
            asked, answered = psn[request], psn[number]
            # an ACK names the last packet that it answers or a later one; a READ has many responses
            assert (answered - asked) % (1 << 24) < max(spans[asked], 8 * 8)
            assert asked not in again
            links += 1
    assert links > 200


@pytest.mark.parametrize("name", SAMPLES)
def test_the_frames_of_the_verdict_have_its_lines(name: str, tmp_path: Path) -> None:
    """Each frame that a line names has it, and the section header has the whole verdict."""
    made = tmp_path / "made.pcapng"
    report = annotate(CAPTURES / name, [], made)
    lines = capture.analyze([str(CAPTURES / name)]).result["verdict"]
    expected = {
        (frame["packet"], f"{number} {line['kind']} {line['cause']} {line['certainty']}")
        for number, line in enumerate(lines, 1)
        for frame in line["frames"]
    }
    written = [
        (number, value)
        for number, pairs in verdicts(made).items()
        for key, value in pairs
        if key == "verdict"
    ]
    assert {(number, value.partition(": ")[0]) for number, value in written} == expected
    assert report["verdict"] == len(written) == len(expected)
    head = next(blocks(made.read_bytes())).body.decode(errors="replace")
    assert all(f"{number}. {line['what']}" in head for number, line in enumerate(lines, 1))


def test_the_verdict_on_a_wait_for_the_receiver(tmp_path: Path) -> None:
    made = tmp_path / "made.pcapng"
    annotate(CAPTURES / "fault-rnr.pcap", [], made)
    told = value_of(verdicts(made), "verdict")
    assert set(told) == {30, 31}
    for text in told.values():
        assert text.startswith("1 fault receiver_not_ready certain: 10.0.0.2 had no receive buffer")
        assert "Cost: 657" in text


def test_the_comments_of_a_verdict_are_bounded_and_clean() -> None:
    line = {
        "kind": "fault", "cause": "loss", "certainty": "likely", "what": "\x1b[2J\n" + "x" * 9999,
        "cost": "", "advice": "\u202eLook.", "filter": None, "frames": [{"packet": 7}],
    }  # fmt: skip
    text = comments.of_capture([line] * 5)
    assert text is not None
    assert len(text) < 8000
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("\n") == 10
    assert [number for number, _ in comments.of_packets([line])] == [7]
    assert comments.of_capture([]) is None


def test_costs_of_both_drivers(tmp_path: Path) -> None:
    """A matched frame has exactly its sender's and receiver's comments; other frames have none."""
    for seed, kind in ((1, "v2_ipv4"), (2, "v2_ipv6"), (3, "v2_ipv4")):
        faults = 0.3 if kind == "v2_ipv4" else 0
        lab = two_drivers(seed, faults=faults)
        wire, traces = lab.write(tmp_path)
        made = tmp_path / "made.pcapng"
        report = annotate(wire, traces, made)
        told = Counter[str]()
        source = {17: "a", 18: "b"}
        for number, block in enumerate(packets(made.read_bytes()), 1):
            driver = [text for text in ours(block) if " node=" in text]
            sent, _, arrived, received = lab.frames[number]
            to = struct.unpack_from(">I", frames_bth(block.packet))[0]
            side = "a" if source[to] == "b" else "b"
            far = "b" if side == "a" else "a"
            expected = []
            if sent is not None:
                expected.append(lab.trace[side].packets[sent - 1][2])
            if arrived is not None:
                expected.append(lab.trace[far].packets[arrived - 1][2])
            assert [dict(words(text)) for text in driver] == [
                dict(words(text)) for text in expected
            ]
            told["tx"] += sent is not None
            told["rx"] += arrived is not None
            told["ambiguous"] += received == "ambiguous"
        assert report["driver"]["tx"] == told["tx"] > 0
        assert report["driver"]["rx"] == told["rx"] > 0
        assert report["driver"]["received"].get("ambiguous", 0) == told["ambiguous"]


def frames_bth(packet: bytes) -> bytes:
    """A v2 frame over IPv4 in a packet block, from the destination QP on."""
    network = 20 + 14 + 20 + 8
    return b"\0" + packet[network + 5 : network + 8]


# what an input may contain -------------------------------------------------------------------


def acknowledgement(psn: int) -> bytes:
    body = frames.transport("RC_ACKNOWLEDGE", 18, psn, frames.aeth(0x1F, 1))
    whole: bytes = frames.frame(frames.Net(), "a", body)
    return whole


def random_capture(seed: int) -> bytes:
    """Sections in both byte orders, with interfaces, packets of every kind and arbitrary blocks."""
    draw = random.Random(seed)
    out = []
    psn = draw.randrange(1 << 24)
    for _ in range(draw.randrange(1, 4)):
        order = draw.choice("<>")
        options = files.option(1, b"a section's own comment", order) if draw.random() < 0.5 else b""
        out.append(files.section(order, options and options + files.option(0, b"", order)))
        out += [files.interface(resolution=draw.choice([None, 6, 9]), order=order)
                for _ in range(draw.randrange(1, 3))]  # fmt: skip
        for _ in range(draw.randrange(12)):
            psn = psn + 1 & 0xFFFFFF
            out.append(random_block(draw, order, acknowledgement(psn)))
    return b"".join(out)


def random_block(draw: random.Random, order: str, data: bytes) -> bytes:
    kind = draw.randrange(6)
    if kind == 0:
        body = draw.randbytes(draw.randrange(400_000 if draw.random() < 0.05 else 40))
        made: bytes = files.block(draw.choice([4, 5, 10, 0xBAD, 0x40000BAD, 99]), body, order)
        return made
    if kind == 1:
        simple: bytes = files.block(SIMPLE, struct.pack(order + "I", len(data)) + data, order)
        return simple
    options = b""
    for _ in range(draw.randrange(4)):
        code = draw.choice([1, 1, 2, 3, 4, 2988, 32768])
        value = b"my note" if code == 1 else draw.randbytes(draw.randrange(9))
        options += files.option(code, value, order)
    if options and draw.random() < 0.8:
        options += files.option(0, b"", order)
    if kind == 2:
        head = struct.pack(order + "HHIIII", 0, 7, 0, draw.randrange(1 << 32), len(data), len(data))
    else:
        head = struct.pack(order + "IIIII", 0, 1, draw.randrange(1 << 32), len(data), len(data))
    body = head + data + bytes(-len(data) % 4) + options
    whole: bytes = files.block(2 if kind == 2 else ENHANCED, body, order)
    return whole


def without_verdict(block: Block) -> bytes:
    """The body of a section header without the comment of `rocelab annotate`."""
    if block.kind != SECTION:
        return block.body
    made = block.body[:16]
    at = 16
    kept = ended = False
    while at < len(block.body):
        code, size = struct.unpack_from(block.order + "HH", block.body, at)
        option = block.body[at : at + 4 + size + -size % 4]
        at += len(option)
        if option[4:].startswith(b"rocelab annotate: verdict"):
            continue
        kept = kept or code != 0
        ended = code == 0
        if kept:
            made += option
    assert not kept or ended
    return made


@pytest.mark.parametrize("seed", range(60))
def test_everything_of_the_input_survives(seed: int, tmp_path: Path) -> None:
    source, made = tmp_path / "source.pcapng", tmp_path / "made.pcapng"
    source.write_bytes(random_capture(seed))
    report = annotate(source, [], made)
    assert report["errors"] == []
    before, after = list(blocks(source.read_bytes())), list(blocks(made.read_bytes()))
    assert len(before) == len(after)
    commented = bare = 0
    for old, new in zip(before, after, strict=True):
        assert (old.order, old.kind) == (new.order, new.kind)
        if not old.is_packet or old.kind == SIMPLE:
            assert old.body == without_verdict(new)
            bare += old.kind == SIMPLE
            continue
        assert old.packet == new.packet
        # in their order, with ours after them
        assert new.options[: len(old.options)] == old.options
        added = new.options[len(old.options) :]
        assert all(code == 1 and value.startswith(b"rocelab/1 ") for code, value in added)
        commented += bool(added)
    assert report["commented"] == commented
    assert report["no_room"] == bare
    assert report["packets"] == sum(block.is_packet for block in before)
    again = tmp_path / "again.pcapng"
    annotate(made, [], again)
    assert again.read_bytes() == made.read_bytes(), "annotating again must not repeat comments"


@pytest.mark.parametrize(("order", "nano"), [("<", True), (">", True), ("<", False), (">", False)])
def test_pcap_becomes_pcapng(order: str, nano: bool, tmp_path: Path) -> None:
    source, made = tmp_path / "source.pcap", tmp_path / "made.pcapng"
    start = 1_700_000_000 * 10**9
    rows = [(start + 1_234_567 * n, acknowledgement(n)) for n in range(5)]
    source.write_bytes(files.pcap(rows, nano=nano, order=order, snap=60))
    annotate(source, [], made)
    old, new = capture.read(str(source)), capture.read(str(made))
    columns = pl.DataFrame(old.packets)
    assert columns.height == 5
    assert columns.drop("comment", strict=False).equals(
        pl.DataFrame(new.packets).drop("comment", strict=False)
    )
    section, interface, *rest = blocks(made.read_bytes())
    assert section.kind == SECTION
    assert struct.unpack_from("<HHI", interface.body) == (1, 0, 60)
    for (_, data), block in zip(rows, rest, strict=True):
        assert struct.unpack_from("<II", block.body, 12) == (60, len(data))
        assert block.packet[20:] == data[:60]


def test_the_section_length_becomes_unspecified(tmp_path: Path) -> None:
    """The old length would be wrong; -1 means "unspecified"."""
    whole = bytearray(
        files.section() + files.interface() + files.packet_block(1, acknowledgement(1))
    )
    struct.pack_into("<q", whole, 16, len(whole) - 28)
    source, made = tmp_path / "source.pcapng", tmp_path / "made.pcapng"
    source.write_bytes(whole)
    annotate(source, [], made)
    assert struct.unpack_from("<q", made.read_bytes(), 16) == (-1,)


def test_facts_outside_a_small_window_are_counted_as_late(tmp_path: Path) -> None:
    """A message that ends after its first packet was written leaves that packet without it."""
    net = frames.Net()
    parts = [frames.frame(net, "a", frames.transport(f"RC_SEND_{name}", 18, psn, b"", bytes(256)))
             for psn, name in ((7, "FIRST"), (8, "LAST"))]  # fmt: skip
    # blocks are read 128 KiB at a time: only a larger capture can exceed a window
    noise = parts[0][:12] + b"\x88\xb5" + bytes(1400)
    rows = [(n * 1000, data) for n, data in enumerate([parts[0], *[noise] * 500, parts[1]])]
    source, made = tmp_path / "source.pcap", tmp_path / "made.pcapng"
    source.write_bytes(files.pcap(rows))
    wide = annotate(source, [], made)
    assert (wide["late"], wide["messages"]) == (0, 2)
    assert set(value_of(verdicts(made), "message").items()) == {(1, "1..502"), (502, "1..502")}
    kept = made.read_bytes()
    narrow = annotate(source, [], made, Options(window=1))
    assert (narrow["late"], narrow["messages"]) == (1, 1)
    assert value_of(verdicts(made), "message") == {502: "1..502"}
    assert [block.packet for block in packets(kept)] == [
        block.packet for block in packets(made.read_bytes())
    ]


@pytest.mark.parametrize("seed", range(150))
def test_hostile_captures(seed: int, tmp_path: Path) -> None:
    """Changed and cut bytes give an annotated capture or a clear error, never a crash."""
    from rocelab.errors import UsageError

    draw = random.Random(seed)
    whole = bytearray(random_capture(seed))
    for _ in range(draw.randrange(1, 8)):
        at = draw.randrange(len(whole))
        whole[at : at + 4] = draw.choice([b"\xff" * 4, b"\0" * 4, draw.randbytes(4)])
    if draw.random() < 0.3:
        del whole[draw.randrange(len(whole)) :]
    source, made = tmp_path / "source.pcapng", tmp_path / "made.pcapng"
    source.write_bytes(whole)
    try:
        report = annotate(source, [], made)
    except UsageError:
        assert not made.exists()
    else:
        assert report["packets"] >= 0
        assert made.exists()
    assert {path.name for path in tmp_path.iterdir()} <= {source.name, made.name}
