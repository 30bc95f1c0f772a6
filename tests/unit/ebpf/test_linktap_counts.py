# SPDX-License-Identifier: GPL-2.0-or-later
"""linktap counts the frames that it does not keep as `rocelab.record.frames` counts the others."""

from __future__ import annotations

import random
import struct
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from requirements import need_program
from rocelab.errors import CellError
from rocelab.record import frames, frames_beyond
from rocelab.record.frames import Frames

ROOT = Path(__file__).parents[3]
LINKTAP = ROOT / "ebpf/linktap"
LIB = ROOT / "ebpf/lib"
IWARP = ROOT / "tests/unit/data/siw-6.12.118-write_lat-64-n10.pcap"


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that counts a file's frames as linktap does, with checks of its memory."""
    need_program("cc")
    program = tmp_path_factory.mktemp("linktap") / "count_pcap"
    out = program.parent
    subprocess.run(["make", "-s", "-C", str(ROOT / "ebpf"), f"O={out}", "tables"], check=True)
    library = [LIB / "bth.c", LIB / "json.c"]
    sources = [Path(__file__).with_name("count_pcap.c"), LINKTAP / "count.c", *library]
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    flags = ("-Wall", "-Wextra", "-Werror", "-O1", *checks, f"-I{LINKTAP}", f"-I{LIB}")
    flags += (f"-I{out}/obj/tables",)
    subprocess.run(["cc", *flags, *sources, "-o", program], check=True)
    return program


def captures() -> list[Path]:
    """Little-endian classic pcaps of Ethernet, with frames of every kind."""
    paths = [IWARP]
    for path in sorted((ROOT / "captures").rglob("*.pcap")):
        head = path.read_bytes()[:24]
        little = head[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
        if little and struct.unpack_from("<I", head, 20)[0] & 0xFFFF == 1 and path.stem != "cut":
            paths.append(path)
    return paths


def both(counter: Path, path: Path, kept: int, ports: tuple[int, ...] = ()) -> tuple[dict, dict]:
    """All frames counted here; and the first `kept` counted here, the others by linktap."""
    whole = frames.count(path, control_ports=ports)
    content = path.read_bytes()
    end = 24
    for _ in range(kept):
        end += 16 + struct.unpack_from("<I", content, end + 8)[0] if end < len(content) else 0
    first = path.with_name("first.pcap")
    first.write_bytes(content[:end])
    said = subprocess.run(
        [counter, path, str(kept)], check=True, capture_output=True, text=True
    ).stdout
    seen = frames.count(first, control_ports=ports)
    more = frames_beyond.add(seen, [said], ports)
    assert more == whole.frames - min(kept, whole.frames)
    return asdict(whole), asdict(seen)


@pytest.mark.slow
def test_the_sum_is_the_same_wherever_the_file_ends(counter: Path, tmp_path: Path) -> None:
    dice = random.Random(4791)
    for path in captures():
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        for kept in (0, dice.randrange(1, 12)):
            whole, parts = both(counter, copy, kept)
            assert whole == parts, (path.name, kept)


def test_ports_of_control_are_learnt_later(counter: Path, tmp_path: Path) -> None:
    """mpirun's daemons choose theirs when the capture already runs."""
    copy = tmp_path / "tcp.pcap"
    content = bytearray(IWARP.read_bytes().replace(b"MPA ID Re", b"no iWARP!"))
    copy.write_bytes(content)
    assert frames.count(copy).tcp > 20
    whole, parts = both(counter, copy, 5, ports=(18600,))
    assert whole == parts
    assert whole["control"] > 20
    assert whole["tcp"] == 0


def test_frames_that_are_cut_or_damaged(counter: Path, tmp_path: Path) -> None:
    """Seeded cuts and bytes: the same numbers, and no byte read beyond a frame."""
    dice = random.Random(15)
    path = tmp_path / "damaged.pcap"
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for source in captures():
            content, offset = source.read_bytes(), 24
            while offset + 16 <= len(content):
                captured, length = struct.unpack_from("<II", content, offset + 8)
                frame = bytearray(content[offset + 16 : offset + 16 + captured])
                offset += 16 + captured
                if dice.random() < 0.5:
                    frame = frame[: dice.randrange(len(frame) + 1)]
                # all but the lengths in IP's and TCP's first bytes, which place what follows
                for _ in range(dice.randrange(3)):
                    at = dice.randrange(len(frame) or 1)
                    if len(frame) > at and at not in (14, 46):
                        frame[at] = dice.randrange(256)
                file.write(struct.pack("<IIII", 1, 1, len(frame), length) + frame)
    whole, parts = both(counter, path, 40)
    assert whole["frames"] > 200
    assert whole["undecoded"] > 20
    assert whole == parts


@pytest.mark.parametrize(
    "said",
    ["", "[]", "{}", '{"schema": "rocelab.linktap/2"}', '{"schema": "rocelab.linktap/1"}', "7"],
)
def test_what_is_no_count_is_refused(said: str) -> None:
    with pytest.raises(CellError, match="did not say what it counted"):
        frames_beyond.add(Frames(), [said])
