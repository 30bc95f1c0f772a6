# SPDX-License-Identifier: GPL-2.0-or-later
"""Every link type says what it is: read, or named and counted."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process as rocelab
from corpus import CAPTURES, files
from rocelab import capture
from rocelab.errors import ExitCode, UsageError

ETHERNET = 14
"""Bytes of the header of the frames below."""


def frames() -> list[bytes]:
    """The frames of a sample, with IPv4 and without tags."""
    data = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
    order = "<" if data[:4] in {b"\x4d\x3c\xb2\xa1", b"\xd4\xc3\xb2\xa1"} else ">"
    contents, at = [], 24
    while at < len(data):
        (length,) = struct.unpack_from(order + "I", data, at + 8)
        contents.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return contents


def write(path: Path, link: int, packets: list[bytes]) -> str:
    path.write_bytes(files.pcap([(1000 * at, one) for at, one in enumerate(packets)], link=link))
    return str(path)


def nflog(order: str, packet: bytes) -> bytes:
    prefix = struct.pack(order + "HH", 7, 10) + b"eth\0"
    return b"\2\0\0\1" + prefix + struct.pack(order + "HH", len(packet) + 4, 9) + packet


HEADERS = {
    "null": (0, lambda frame: b"\2\0\0\0" + frame[ETHERNET:]),
    "null of a big-endian machine": (0, lambda frame: b"\0\0\0\2" + frame[ETHERNET:]),
    "loop": (108, lambda frame: b"\0\0\0\2" + frame[ETHERNET:]),
    "ppi": (192, lambda frame: struct.pack("<BBHI", 0, 0, 16, 1) + bytes(8) + frame),
    "ppi of raw IP": (192, lambda frame: struct.pack("<BBHI", 0, 0, 8, 101) + frame[ETHERNET:]),
    "ipnet": (226, lambda frame: b"\1\2" + bytes(22) + frame[ETHERNET:]),
    "nflog": (239, lambda frame: nflog("<", frame[ETHERNET:])),
    "nflog of a big-endian machine": (239, lambda frame: nflog(">", frame[ETHERNET:])),
    "pktap": (258, lambda frame: struct.pack("<III", 108, 1, 1) + bytes(96) + frame),
}


def judged(path: str) -> tuple[Any, ...]:
    result = capture.analyze([path]).result
    return (
        result["opcodes"],
        result["icrc"]["ok"],
        result["icrc"]["bad"],
        [row["directions"][0]["goodput_bytes"] for row in result["connections"]],
        [row["detail"] for row in result["findings"]],
        result["conditions"],
    )


@pytest.mark.parametrize("name", HEADERS)
def test_link_types_that_carry_ip_or_ethernet_are_read(name: str, tmp_path: Path) -> None:
    link, wrapped = HEADERS[name]
    plain = write(tmp_path / "plain", 1, frames())
    assert judged(write(tmp_path / "other", link, [wrapped(one) for one in frames()])) == judged(
        plain
    )


@pytest.mark.parametrize("order", "<>")
def test_pcap_of_old_red_hat_systems(order: str, tmp_path: Path) -> None:
    path = tmp_path / "kuznetzov"
    data = struct.pack(order + "IHHIIII", 0xA1B2CD34, 2, 4, 0, 0, 65535, 1)
    for at, frame in enumerate(frames()):
        data += struct.pack(order + "IIIIIHBB", 1, at, len(frame), len(frame), 3, 8, 0, 0) + frame
    path.write_bytes(data)
    assert judged(str(path)) == judged(write(tmp_path / "plain", 1, frames()))
    copy = tmp_path / "annotated.pcapng"
    assert rocelab("annotate", str(path), "-o", str(copy)).returncode == 0
    assert judged(str(copy))[:4] == judged(str(path))[:4]


def test_another_link_type_is_named_and_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "user", 147, frames())
    done = rocelab("analyze", path)
    assert done.returncode == ExitCode.USAGE
    says = " ".join(done.stderr.split())
    assert f"link type 147 (USER0) is not read: {len(frames())} packet(s) skipped" in says
    assert "hold RoCE with a correct ICRC" in says


def test_an_unknown_link_type_has_a_number(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be used") as error:
        capture.analyze([write(tmp_path / "odd", 9999, [bytes(60)] * 3)])
    assert error.value.cause == "link type 9999 is not read: 3 packet(s) skipped"


def test_radio_frames_in_ppi_are_named(tmp_path: Path) -> None:
    wrapped = [struct.pack("<BBHI", 0, 0, 8, 105) + bytes(40)]
    with pytest.raises(UsageError) as error:
        capture.analyze([write(tmp_path / "radio", 192, wrapped)])
    assert "link type 105 (IEEE802_11)" in error.value.cause


def test_interfaces_of_pcapng_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "two.pcapng"
    data = [files.section(), files.interface(link=189), files.interface(link=1)]
    for at, frame in enumerate(frames()):
        data += [files.packet_block(at, frame, number=interface) for interface in (0, 1)]
    path.write_bytes(b"".join(data))
    result = capture.analyze([str(path)]).result
    assert result["roce"]["packets"] == len(frames())
    (row,) = result["conditions"]
    assert row["kind"] == "link_type"
    assert row["detail"].startswith(
        f"link type 189 (USB_LINUX) is not read: {len(frames())} packet"
    )
    (row,) = result["input"]["not_looked_into"]
    assert (row["kind"], row["number"], row["packets"]) == ("link_type", 189, len(frames()))


def with_fcs(path: Path, form: str) -> str:
    """The frames with four more bytes each, which the file declares."""
    packets = [(1000 * at, one + b"\xfc" * 4) for at, one in enumerate(frames())]
    if form.startswith("pcap,"):
        length = 2 if form.endswith("words") else 4
        path.write_bytes(files.pcap(packets, link=1 | 1 << 26 | length << 28))
        return str(path)
    length = 32 if form.endswith("bits") else 4
    link = struct.pack("<HHI", 1, 0, 0) + files.option(13, bytes([length])) + files.option(0, b"")
    data = [files.section(), files.block(1, link)]
    data += [files.packet_block(time // 1000, one) for time, one in packets]
    path.write_bytes(b"".join(data))
    return str(path)


@pytest.mark.parametrize("form", ["pcap, words", "pcap, bytes", "pcapng, bits", "pcapng, bytes"])
def test_a_declared_fcs_is_counted_once(form: str, tmp_path: Path) -> None:
    options = capture.Options(l1=True)
    plain = capture.analyze([write(tmp_path / "plain", 1, frames())], options).result
    result = capture.analyze([with_fcs(tmp_path / "fcs", form)], options).result
    assert result["overhead"] == plain["overhead"]
    assert result["input"]["bytes"] == plain["input"]["bytes"]
    assert result["icrc"] == plain["icrc"]
