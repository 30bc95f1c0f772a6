# SPDX-License-Identifier: GPL-2.0-or-later
"""Each decoded field equals tshark's, packet by packet."""

from __future__ import annotations

import ipaddress
import random
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from corpus import CAPTURES, IN_WIRESHARK, files, frames
from requirements import need_program
from rocelab import capture

Net = frames.Net


@pytest.fixture(scope="module", autouse=True)
def _tshark() -> None:
    need_program("tshark")


# our column: tshark's field, and how to convert its text to our value
FIELDS = {
    "opcode": "infiniband.bth.opcode", "pad": "infiniband.bth.padcnt",
    "tver": "infiniband.bth.tver", "pkey": "infiniband.bth.p_key",
    "dqpn": "infiniband.bth.destqp", "psn": "infiniband.bth.psn",
    "solicited": "infiniband.bth.se", "migreq": "infiniband.bth.m",
    "ack_req": "infiniband.bth.a",
    "dma_len": "infiniband.reth.dmalen", "qkey": "infiniband.deth.q_key",
    "sqpn": "infiniband.deth.srcqp", "syndrome": "infiniband.aeth.syndrome",
    "msn": "infiniband.aeth.msn", "swap_add": "infiniband.atomiceth.swapdt",
    "compare": "infiniband.atomiceth.cmpdt", "original": "infiniband.atomicacketh.origremdt",
    "imm": "infiniband.immdt", "inv_rkey": "infiniband.ieth",
    "ee_context": "infiniband.rdeth.eecnxt",
}  # fmt: skip
# outer headers: field names differ by net, and a v1 packet's GRH has its own
OUTER = {
    "v2_ipv4": {"tclass": "ip.dsfield", "hop_limit": "ip.ttl", "udp_src_port": "udp.srcport"},
    "v2_ipv6": {"tclass": "ipv6.tclass", "hop_limit": "ipv6.hlim", "udp_src_port": "udp.srcport"},
    "v1": {"tclass": "infiniband.grh.tclass", "hop_limit": "infiniband.grh.hoplmt"},
    "infiniband": {},
}
OUTER_NAMES = sorted({name for fields in OUTER.values() for name in fields.values()})
# tshark 4.0 has no fields for FECN and BECN: take them from the bytes that it shows for the BTH
BTH = "infiniband.bth"
EITHER = {"va": "infiniband.reth.va", "rkey": "infiniband.reth.r_key"}
ICRC = "infiniband.invariant.crc"
# tshark 4.0 does not decode XRC, FLUSH and ATOMIC WRITE, and reads RD's extended headers eight
# bytes too late (a SEND's RDETH from the end of its DETH): compare only the BTH of these
UNKNOWN_TO_TSHARK = ("XRC_", "RC_FLUSH", "RC_ATOMIC_WRITE", "RD_")


OTHERWISE = {
    "cut.pcap",
    "case-mirrored.pcap",
    "case-other-port.pcap",
    "case-unsorted.pcap",
    "case-tunnels.pcap",
    "case-fabrics.pcap",
}
"""Samples whose rows are not tshark's, one by one; tests/unit/capture/test_cases.py has them."""


def tshark(path: Path) -> dict[int, dict[str, str]]:
    """tshark's fields of every frame with a BTH, by frame number."""
    names = ["frame.number", *FIELDS.values(), *EITHER.values(), *OUTER_NAMES, ICRC, BTH,
             "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "infiniband.grh.sgid",
             "infiniband.grh.dgid", "infiniband.lrh.slid", "infiniband.lrh.dlid"]  # fmt: skip
    disabled = [word for name in _heuristics() for word in ("--disable-protocol", name)]
    argv = ["tshark", "-n", "-r", str(path), *disabled, "-T", "fields", "-E", "occurrence=l",
            "-Y", "infiniband.bth"]  # fmt: skip
    argv += [word for name in names for word in ("-e", name)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]
    assert rows, done.stderr
    return {int(row["frame.number"]): row for row in rows}


@cache
def _heuristics() -> list[str]:
    """Heuristic dissectors, which would take random payloads for malformed packets."""
    argv = ["tshark", "-G", "heuristic-decodes"]
    text = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    names = [row[1] for row in rows if row[0] == "infiniband.payload"]
    return [name for name in names if name != "ethertype" and "." not in name]


def number(text: str) -> int | None:
    if not text:
        return None
    if text in ("True", "False"):
        return int(text == "True")
    # byte fields are printed as bare hexadecimal digits
    return int(text, 0)


def compare(path: Path) -> int:
    rows = pl.DataFrame(capture.read(path).packets).to_dicts()
    theirs = tshark(path)
    assert [row["packet"] for row in rows] == sorted(theirs)
    for ours in rows:
        compare_packet(ours, theirs[ours["packet"]])
    return len(rows)


def compare_packet(ours: dict[str, Any], theirs: dict[str, str]) -> None:
    name = ours["opcode_name"] or ""
    where = f"packet {ours['packet']} {name}"
    bth_only = name.startswith(UNKNOWN_TO_TSHARK) or not name
    for column, field in FIELDS.items():
        text = theirs[field]
        if bth_only and not field.startswith("infiniband.bth"):
            continue
        if field in ("infiniband.immdt", "infiniband.ieth") and text:
            text = "0x" + text.removeprefix("0x").replace(":", "")
        value = ours[column]
        assert (None if value is None else int(value)) == number(text), f"{where}: {column}"
    if not bth_only:
        for column, field in EITHER.items():
            # tshark shows an atomic's address and key under the RETH's names
            assert ours[column] == number(theirs[field]), f"{where}: {column}"
        if name != "CNP" and ours["icrc"] is not None:
            assert ours["icrc"] == number(theirs[ICRC]), f"{where}: ICRC"
    compare_outer(ours, theirs, where)
    for side, fields in (("src", ("ip.src", "ipv6.src", "infiniband.grh.sgid")),
                         ("dst", ("ip.dst", "ipv6.dst", "infiniband.grh.dgid"))):  # fmt: skip
        text = next((theirs[field] for field in fields if theirs[field]), "")
        if not text:
            lid = number(theirs[f"infiniband.lrh.{side[0]}lid"])
            assert ours[side] == f"lid:{lid}", f"{where}: {side}"
            continue
        address = ipaddress.ip_address(text)
        mapped = getattr(address, "ipv4_mapped", None)
        assert ours[side] == str(mapped or address), f"{where}: {side}"


def compare_outer(ours: dict[str, Any], theirs: dict[str, str], where: str) -> None:
    """FECN and BECN, DSCP and ECN, TTL, UDP port, and VLAN tags."""
    byte = bytes.fromhex(theirs[BTH].replace(":", ""))[4]
    assert (ours["fecn"], ours["becn"]) == (bool(byte & 0x80), bool(byte & 0x40)), where
    values = {**ours, "tclass": ours["dscp"] << 2 | ours["ecn"]}
    for column, field in OUTER[ours["net"]].items():
        assert values[column] == number(theirs[field]), f"{where}: {column}"
    layers = theirs["frame.protocols"].split(":")
    assert ours["vlans"] == sum(layers.count(name) for name in ("vlan", "ieee8021ad")), where


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*IN_WIRESHARK} - OTHERWISE))
def test_corpus(name: str) -> None:
    assert compare(CAPTURES / name) > 0


def carries(name: str) -> bool:
    """Whether the opcode has a payload."""
    return "READ_REQUEST" not in name and any(
        word in name for word in ("SEND", "_WRITE", "READ_RESPONSE")
    )


def every_packet(seed: int) -> list[tuple[int, bytes]]:
    """All opcodes over all nets, with and without VLAN tags, all paddings, random fields."""
    draw = random.Random(seed)
    packets: list[bytes] = []
    for kind in ("v1", "v2_ipv4", "v2_ipv6"):
        for vlans in ([], [5], [100, 5]):
            for name, (_, headers) in frames.OPCODES.items():
                pads = (0, 1, 2, 3) if not vlans else (draw.randrange(4),)
                for pad in pads:
                    net = Net(kind=kind, vlans=vlans, tclass=draw.randrange(256),
                              ttl=draw.randrange(1, 256),
                              sport=draw.randrange(49152, 65536))  # fmt: skip
                    if kind == "v2_ipv6":
                        net.a, net.b = "fd00::1", "fd00::2"
                    size = sum(frames.SIZES[header] for header in headers)
                    raw = bytearray(draw.randbytes(size))
                    payload = draw.randbytes(8 - pad)
                    if not carries(name):
                        payload = b""
                    if name == "CNP":
                        raw = bytearray(16)
                    wire = frames.transport(
                        name, draw.randrange(2, 1 << 24), draw.randrange(1 << 24), bytes(raw),
                        payload, se=draw.randrange(2), mig=draw.randrange(2),
                        ack=draw.randrange(2), pkey=draw.randrange(1 << 16),
                        resv8a=draw.choice([0, 0x40, 0x80, 0xC0]),
                    )  # fmt: skip
                    packets.append(frames.frame(net, draw.choice("ab"), wire))
    return [(index * 1000, data) for index, data in enumerate(packets)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_every_opcode_net_vlan_and_pad(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "all.pcap"
    path.write_bytes(files.pcap(every_packet(seed)))
    assert compare(path) > 1500
    result = capture.analyze([str(path)]).result
    assert result["icrc"]["bad"] == 0
    assert result["icrc"]["unchecked"] == 0
    headers = result["overhead"]["by_header"]
    overhead = result["overhead"]
    assert sum(headers.values()) + overhead["payload_bytes"] == overhead["wire_bytes"]
