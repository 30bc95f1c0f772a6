# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's ICRC status equals the analyzer's for each packet, and nothing makes Lua fail."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

import tshark_plugin
from corpus import CAPTURES, IN_WIRESHARK, crc, files, frames
from rocelab import capture
from tshark_plugin import PLUGIN, REPOSITORY, WHICH, Tshark, TsharkError

pytestmark = pytest.mark.slow

Net = frames.Net
FIELDS = ["infiniband.bth.opcode", "rocelab.icrc.status", "rocelab.icrc.expected",
          "rocelab.fecn", "rocelab.becn"]  # fmt: skip
GOLDEN = REPOSITORY / "tests/golden/wireshark/corpus.tsv"
WORD = {True: "1", False: "0", None: "2"}
"""Good, bad and unverified: Wireshark's numbers for checksum status."""


Shown = dict[int, dict[str, str]]
"""The plugin's fields, by frame number."""


def compare(shown: Shown, path: Path) -> tuple[list[str], int]:
    """Compare both on a capture; return the statuses, and the packets that only one calls RoCE."""
    ours = {row["packet"]: row for row in pl.DataFrame(capture.read(path).packets).to_dicts()}
    both = sorted(ours.keys() & shown.keys())
    for number in both:
        row, theirs = ours[number], shown[number]
        where = f"{path.name} packet {number} {row['opcode_name']}"
        verified = path.name not in IN_FRAGMENTS
        assert theirs["rocelab.icrc.status"] == (WORD[row["icrc_ok"]] if verified else ""), where
        assert tshark_plugin.flag(theirs["rocelab.fecn"]) == str(int(row["fecn"])), where
        assert tshark_plugin.flag(theirs["rocelab.becn"]) == str(int(row["becn"])), where
        if row["icrc_ok"] and verified:
            assert int(theirs["rocelab.icrc.expected"], 0) == row["icrc"], where
    statuses = [shown[number]["rocelab.icrc.status"] for number in both]
    return statuses, len(ours.keys() ^ shown.keys())


def roce(tshark: Tshark, path: Path) -> Shown:
    """What the plugin shows for packets with a BTH."""
    rows = tshark.fields(path, FIELDS)
    return {number: row for number, row in rows.items() if row["infiniband.bth.opcode"]}


@pytest.fixture(scope="module")
def golden() -> dict[str, Shown]:
    """What the plugin shows for the corpus; tests/golden/test_wireshark.py gets it from tshark."""
    shown: dict[str, Shown] = {}
    _, header, *lines = GOLDEN.read_text().splitlines()
    fields = header.split("\t")[2:]
    for line in lines:
        name, number, *cells = line.split("\t")
        if any(cells):
            shown.setdefault(name, {})[int(number)] = dict(zip(fields, cells, strict=True))
    return shown


NOT_ALIKE = {"cut.pcap", "case-mirrored.pcap", "case-other-port.pcap"}
"""No whole packet; copies that the analyzer leaves out; a port that Wireshark must be told."""
IN_FRAGMENTS = {"fragments.pcap"}
"""IP has fragmented each packet; the plugin does not verify their ICRCs (docs/limitations.md)."""
ONE_ONLY = {"case-fabrics.pcap": 4}
"""Packets in L2TPv3, whose content Wireshark must be told."""


@pytest.mark.parametrize("name", [name for name in IN_WIRESHARK if name not in NOT_ALIKE])
def test_corpus(golden: dict[str, Shown], name: str) -> None:
    statuses, one_only = compare(golden[name], CAPTURES / name)
    assert statuses
    assert one_only == ONE_ONLY.get(name, 0)


def draw_net(draw: random.Random) -> frames.Net:
    net = Net(
        kind=draw.choice(["v1", "v2_ipv4", "v2_ipv6"]),
        vlans=draw.choice([[], [], [5], [100, 5]]),
        tclass=draw.randrange(256),
        ttl=draw.randrange(1, 256),
        sport=draw.randrange(49152, 65536),
    )
    if net.kind == "v2_ipv6":
        net.a, net.b = "fd00::1", "fd00::2"
        if draw.randrange(4) == 0:
            net.extensions = [(60, bytes([1, 4, 0, 0, 0, 0]))]
    elif net.kind == "v2_ipv4" and draw.randrange(4) == 0:
        net.options = bytes([1] * draw.choice([4, 8, 40]))
    return net


def random_transport(draw: random.Random) -> bytes:
    name = draw.choice(list(frames.OPCODES))
    size = sum(frames.SIZES[kind] for kind in frames.OPCODES[name][1])
    payload = bytes(draw.choice([0, 0, 1, 7, 64, draw.randrange(300)]))
    if name == "CNP":
        payload = b""
    return frames.transport(
        name, draw.randrange(1 << 24), draw.randrange(1 << 24), bytes(size), payload,
        resv8a=draw.choice([0, 0, 0x80, 0x40, 0xC0, 0x15]), pkey=draw.randrange(1 << 16),
    )  # fmt: skip


def random_frame(draw: random.Random) -> bytes:
    """A frame, in one of four cases changed after its BTH or in its ICRC."""
    net, body = draw_net(draw), random_transport(draw)
    kind = draw.randrange(8)
    if kind == 0:
        return frames.frame(net, draw.choice("ab"), body, crc=draw.randbytes(4))
    whole = frames.frame(net, draw.choice("ab"), body)
    if kind == 1:
        changed, behind_bth = bytearray(whole), len(whole) - len(body) - 4 + 12
        changed[draw.randrange(behind_bth, len(whole))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    return whole


def test_ten_thousand_random_packets(tshark: Tshark, tmp_path: Path) -> None:
    draw = random.Random(7)
    path = tmp_path / "random.pcap"
    path.write_bytes(files.pcap((index * 1000, random_frame(draw)) for index in range(10_000)))
    statuses, one_only = compare(roce(tshark, path), path)
    assert one_only == 0
    assert len(statuses) == 10_000
    assert statuses.count("0") > 1000
    assert statuses.count("1") > 7000


KINDS = {
    "v1": Net(kind="v1", vlans=[7]),
    "ipv4": Net(options=bytes([1] * 8)),
    "ipv6": Net(kind="v2_ipv6", a="fd00::1", b="fd00::2",
                extensions=[(0, bytes([1, 4, 0, 0, 0, 0])), (60, bytes([1, 4, 0, 0, 0, 0]))]),
}  # fmt: skip


def one_frame(kind: str) -> bytes:
    headers = frames.reth(1 << 40, 7, 21)
    body = frames.transport("RC_RDMA_WRITE_ONLY", 18, 4711, headers, bytes(21))
    return frames.frame(KINDS[kind], "a", body)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_truncation(tshark: Tshark, tmp_path: Path, kind: str) -> None:
    """ICRCs of cut frames are never verified and never make Lua fail."""
    whole = one_frame(kind)
    path = tmp_path / "cut.pcapng"
    blocks = [files.section(), files.interface()]
    blocks += [
        files.packet_block(0, whole[:size], size=len(whole)) for size in range(len(whole) + 1)
    ]
    path.write_bytes(b"".join(blocks))
    statuses, one_only = compare(roce(tshark, path), path)
    assert one_only == 0
    assert statuses.count("1") == 1
    assert set(statuses) == {"1", "2"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_flipped_bit(tshark: Tshark, tmp_path: Path, kind: str) -> None:
    whole = one_frame(kind)
    packets = []
    for bit in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        # so far apart that none is taken for a mirrored port's copy of another
        packets.append((bit * 1_000_000, bytes(changed)))
    path = tmp_path / "flipped.pcap"
    path.write_bytes(files.pcap(packets))
    statuses, one_only = compare(roce(tshark, path), path)
    # these bits decide what the frame is, where Wireshark and the analyzer use different rules
    assert one_only < 200
    assert statuses.count("0") > 600
    assert statuses.count("1") > 40


def test_link_types_and_tunnels(tshark: Tshark, tmp_path: Path) -> None:
    """The ICRC is verified in every packet with a BTH: raw IP, cooked, and inside VXLAN."""
    body = frames.transport("RC_SEND_ONLY", 18, 1, b"", bytes(16))
    inner = frames.frame(Net(), "a", body)
    vxlan = bytes([8, 0, 0, 0, 0, 0, 42, 0]) + inner
    net = Net(a="192.0.2.1", b="192.0.2.2", dport=4789)
    network, udp, rest = frames.layers(net, "a", vxlan)
    outer = frames.ethernet(net, net.address("a"), net.address("b"), network + udp + rest)
    path = tmp_path / "vxlan.pcap"
    path.write_bytes(files.pcap([(0, outer + bytes(4))]))
    rows = tshark.fields(path, FIELDS)
    assert rows[1]["rocelab.icrc.status"] == "1"


def test_preference_turns_it_off(tshark: Tshark) -> None:
    path = CAPTURES / "icrc-corrupted.pcap"
    names = ["rocelab.icrc.status", "_ws.expert.message", "rocelab.fecn"]
    row = tshark.fields(path, names)[1]
    assert row["rocelab.icrc.status"] == "0"
    assert "Bad ICRC" in row["_ws.expert.message"]
    row = tshark.fields(path, names, "-o", "rocelab.check_icrc:FALSE")[1]
    assert row["rocelab.icrc.status"] == ""
    assert "ICRC" not in row["_ws.expert.message"]
    assert row["rocelab.fecn"]


def test_experts_without_the_field(tshark: Tshark) -> None:
    """The ICRC is computed only on demand, unless a preference asks for it always."""
    path = CAPTURES / "icrc-corrupted.pcap"
    quiet = tshark.run("-r", path, "-q", "-z", "expert")
    assert "Bad ICRC" not in quiet
    words = ["-o", "rocelab.check_icrc_always:TRUE"]
    assert "Bad ICRC" in tshark.run("-r", path, "-q", "-z", "expert", *words)


def test_filter(tshark: Tshark) -> None:
    """`-Y` accepts Wireshark's checksum words."""
    path = CAPTURES / "icrc-corrupted.pcap"
    assert tshark.run("-r", path, "-Y", 'rocelab.icrc.status == "Bad"')
    assert not tshark.run("-r", path, "-Y", 'rocelab.icrc.status == "Good"')


@pytest.mark.parametrize("which", WHICH)
def test_a_failing_plugin_is_noticed(which: str, tmp_path: Path) -> None:
    """The tests notice errors in Lua, both on loading and while dissecting."""
    source = PLUGIN.read_text()
    needle = "function rocelab.dissector(tvb, pinfo, tree)\n"
    assert needle in source
    for number, broken in enumerate(
        [source + "\nerror('x')\n", source.replace(needle, needle + "    error('x')\n")]
    ):
        home = tmp_path / str(number)
        plugin = tmp_path / f"{number}.lua"
        plugin.write_text(broken)
        home.mkdir()
        with pytest.raises(TsharkError):
            tshark_plugin.with_plugin(which, home, plugin).fields(
                CAPTURES / "rc-v1.pcap", ["rocelab.fecn"]
            )


def test_generator_and_plugin_agree_on_the_seed() -> None:
    """The plugin starts from the register after the LRH's eight bytes of ones."""
    register = crc.crc32(b"\xff" * 8) ^ 0xFFFFFFFF
    assert f"local AFTER_LRH = 0x{register:08x}\n" in PLUGIN.read_text()
