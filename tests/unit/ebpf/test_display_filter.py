# SPDX-License-Identifier: GPL-2.0-or-later
"""rxedump's display filters choose the frames that tshark chooses."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from requirements import need_program

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = ("rc-v1", "rc-v2-ipv4", "rc-v2-ipv6", "fault-rnr", "ud", "rc-v2-ipv4-options", "snapped")
FILTERS = (
    "infiniband.bth.opcode==0x11 && infiniband.aeth.msn > 2 || infiniband.bth.opcode == 4",
    "infiniband.bth.opcode ne 17 and not infiniband.bth.a == 1 && infiniband.bth",
    "infiniband.bth.psn >= 2 and infiniband.bth.psn lt 6 || infiniband.reth.dmalen > 64",
    "infiniband.reth && infiniband.reth.va != 0 and infiniband.reth.r_key ge 1",
    "infiniband.aeth.syndrome == 0 || infiniband.aeth.syndrome.opcode == 1",
    "infiniband.atomiceth.swapdt > 0 or infiniband.atomicacketh.origremdt >= 0",
    "infiniband.deth.srcqp > 1 || infiniband.deth.q_key == 0x11111111 or infiniband.immdt",
    "infiniband.bth.destqp != 0x12 && infiniband.bth.p_key == 65535",
    "!(infiniband.bth.se == 1) && infiniband.bth.m == 1 && infiniband.bth.padcnt <= 3",
    "infiniband.bth.a == true || infiniband.bth.tver > 0",
    "ip.src == 10.0.0.1 or ip.src==10.0.0.0/8 && ip.dst != 10.0.0.1",
    "ip.addr == 10.0.0.1 && ip.addr != 192.0.2.77",
    "ip.dsfield.dscp == 0 and ip.dsfield.ecn < 3 && ip.ttl > 1 && ip.len > 70",
    "ipv6.addr == fd00::1 || ipv6.src == fe80::/10",
    "ipv6.hlim > 0 && ipv6.flow >= 0 && ipv6.dst != ::1",
    "infiniband.grh.sgid == fe80::/10 or infiniband.grh.dgid == ::ffff:0:0/96",
    "udp.dstport == 4791 && udp.port != 4790 && udp.srcport > 1024 and udp.length gt 40",
    "eth.type == 0x8915 || eth.src == 02:00:00:00:00:01 && !eth.dst == 02:00:00:00:00:01",
    "not udp && frame.len > 100",
)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of them as one capture: tshark takes long to start."""
    path = tmp_path_factory.mktemp("samples") / "samples.pcap"
    captures = [(ROOT / f"captures/{name}.pcap").read_bytes() for name in CAPTURES]
    path.write_bytes(captures[0] + b"".join(capture[24:] for capture in captures[1:]))
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filters of rxedump alone."""
    out = tmp_path_factory.mktemp("display_filter")
    need_program("cc")
    subprocess.run(
        ["make", "-C", str(ROOT / "ebpf/tests"), f"O={out}", "display_filter"], check=True
    )
    return out / "obj/tests/display_filter"


def ours(program: Path, text: str, capture: Path) -> list[int]:
    """The numbers of the frames that pass."""
    done = subprocess.run(
        [program, text], input=capture.read_bytes(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return [int(number) for number in done.stdout.split()]


def tshark(text: str, capture: Path) -> list[int]:
    """The same by tshark."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", text, "-T", "fields", "-e", "frame.number"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


@pytest.mark.parametrize("text", FILTERS)
def test_the_frames_that_tshark_chooses(program: Path, samples: Path, text: str) -> None:
    """Of samples with every field, present and absent."""
    need_program("tshark")
    found = ours(program, text, samples)
    assert found == tshark(text, samples)
    assert found, "a filter that nothing passes shows nothing"


def test_every_field_is_tried_and_documented() -> None:
    """The list of fields, these tests and the manual page agree."""
    source = (ROOT / "ebpf/rxedump/packet_fields.c").read_text()
    fields = set(re.findall(r'^\t(?:[A-Z]+\(|\{)"([\w.]+)",', source, re.MULTILINE))
    assert len(fields) > 40
    page = (ROOT / "docs/man/rxedump.8.md").read_text()
    section = page.split("## DISPLAY FILTERS")[1].split("\n## ")[0]
    assert (
        set(re.findall(r"`((?:frame|eth|ip|ipv6|udp|infiniband)(?:\.[\w.]+)?)`", section)) == fields
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "missing at the end"),
        ("tcp.port == 1", "'tcp.port' is no field"),
        ("ip.src == 1.2.3", "takes an address"),
        ("ip.src == 1.2.3.4/33", "takes an address"),
        ("ip.src > 1.2.3.4", "== and != only"),
        ("infiniband.bth.psn ==", "takes a number"),
        ("infiniband.bth.psn == 5x", "takes a number"),
        ("infiniband.bth.psn == 99999999999999999999", "takes a number"),
        ("infiniband.bth == 5", "has no value"),
        ("eth.src == 02:00", "takes an Ethernet address"),
        ("(ip", "a ) is missing"),
        ("ip ip", "out of place"),
        ("ip &&", "missing at the end"),
        ("ip $ udp", "out of place"),
        ("(" * 1000 + "ip", "nested too deeply"),
        (" || ".join(["ip"] * 200), "too long"),
        ("x" * 500, "too long"),
    ],
)
def test_what_cannot_be_read(program: Path, text: str, reason: str) -> None:
    """It is refused with the reason."""
    done = subprocess.run(
        [program, text], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, reason in done.stdout) == (2, True), done.stdout
