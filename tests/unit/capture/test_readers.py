# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers: formats, merging, and snapped, damaged and hostile files."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from corpus import CAPTURES, SAMPLES, files, frames, lossy_wire, scenarios, schedule
from requirements import need_program
from rocelab import capture
from rocelab.errors import UsageError

Net = frames.Net

PLAIN = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
LIMIT_SECONDS = 600


def opcodes(path: Path | str) -> dict[str, int]:
    counts: dict[str, int] = capture.analyze([str(path)]).result["opcodes"]
    return counts


WANTED = opcodes(CAPTURES / "rc-v2-ipv4.pcap")


def test_gzip() -> None:
    assert opcodes(CAPTURES / "rc-v2-ipv4.pcap.gz") == WANTED


def test_several_gzip_members(tmp_path: Path) -> None:
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(PLAIN[:100]) + gzip.compress(PLAIN[100:]))
    assert opcodes(path) == WANTED


def test_zstd(tmp_path: Path) -> None:
    need_program("zstd")
    path = tmp_path / "capture"
    done = subprocess.run(["zstd", "-c"], input=PLAIN, capture_output=True, check=True, timeout=300)
    path.write_bytes(done.stdout)
    assert opcodes(path) == WANTED


@pytest.mark.parametrize("program", ["cat", "gzip", "zstd"])
def test_standard_input(program: str) -> None:
    need_program(program)
    packed = subprocess.run(
        [program, *(["-c"] if program != "cat" else [])],
        input=PLAIN, capture_output=True, check=True, timeout=300,
    )  # fmt: skip
    code = "from rocelab import capture; print(capture.analyze(['-']).result['roce']['packets'])"
    done = subprocess.run(
        [sys.executable, "-c", code], input=packed.stdout, capture_output=True, check=True,
        timeout=300,
    )  # fmt: skip
    assert int(done.stdout) == 11


def test_files_merge_in_time_order(tmp_path: Path) -> None:
    """Requests in one file and answers in another form one connection."""
    whole = list(lossy_wire.Wire(schedule.plan(7, faults=0)).run())
    paths = [str(tmp_path / name) for name in ("even.pcap", "odd.pcapng")]
    Path(paths[0]).write_bytes(files.pcap(whole[0::2]))
    Path(paths[1]).write_bytes(files.pcapng(whole[1::2]))
    both = tmp_path / "both.pcap"
    both.write_bytes(files.pcap(whole))
    merged = capture.analyze(paths).result
    alone = capture.analyze([str(both)]).result
    for connection in (*merged["connections"], *alone["connections"]):
        for direction in connection["directions"]:
            # which of two packets of the same time is first decides what was in flight
            del direction["pace"], direction["max_reads"]
    for key in ("roce", "icrc", "opcodes", "connections"):
        assert merged[key] == alone[key]
    table = pl.DataFrame(capture.read(*paths).packets)
    assert table["time_ns"].is_sorted()
    assert table.group_by("file").len().sort("file")["len"].to_list() == [
        len(whole[0::2]), len(whole[1::2]),
    ]  # fmt: skip


def test_times_and_comments_of_pcapng() -> None:
    table = pl.DataFrame(capture.read(CAPTURES / "sections.pcapng").packets)
    start = schedule.START_NS
    assert table["time_ns"].to_list() == [start, start + 100 * 10**9 // 2**20, start + 500_000]
    assert table["comment"].to_list() == ["rocelab/1 node=n1 dev=rxe0", None, None]
    assert table["packet"].to_list() == [1, 2, 3]


TIMES_NS = [1_700_000_000_123_456_789, 1_700_000_001_000_000_001]


def times(path: Path, content: bytes) -> list[int]:
    path.write_bytes(content)
    table = pl.DataFrame(capture.read(path).packets)
    assert table["opcode_name"].to_list() == ["RC_SEND_ONLY"] * len(TIMES_NS)
    times_ns: list[int] = table["time_ns"].to_list()
    return times_ns


def sends() -> list[tuple[int, bytes]]:
    wire = frames.transport("RC_SEND_ONLY", 1, 2, b"", b"abcd")
    return [(time, frames.frame(Net(), "a", wire)) for time in TIMES_NS]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("nano", "unit"), [(True, 1), (False, 1000)])
def test_times_of_pcap(order: str, nano: bool, unit: int, tmp_path: Path) -> None:
    content = files.pcap(sends(), nano=nano, order=order)
    assert times(tmp_path / "one.pcap", content) == [time // unit * unit for time in TIMES_NS]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("resolution", "offset"),
    [
        *itertools.product([None, 0, 3, 6, 9, 0x80, 0x80 | 10, 0x80 | 32], [None, 10**9, -5]),
        # 64 bits of picoseconds reach back only half a year
        (12, 1_699_999_999), (0x80 | 50, 1_699_999_999),
    ],
)  # fmt: skip
def test_times_of_pcapng(
    order: str, resolution: int | None, offset: int | None, tmp_path: Path
) -> None:
    """Any if_tsresol: powers of ten and of two; if_tsoffset is in seconds."""
    digits = 6 if resolution is None else resolution
    per_second = 1 << (digits & 0x7F) if digits & 0x80 else 10**digits
    ticks = [(time - (offset or 0) * 10**9) * per_second // 10**9 for time in TIMES_NS]
    content = files.section(order) + files.interface(
        resolution=resolution, order=order, offset=offset
    )
    for tick, (_, frame) in zip(ticks, sends(), strict=True):
        content += files.packet_block(tick, frame, order=order)
    wanted = [tick * 10**9 // per_second + (offset or 0) * 10**9 for tick in ticks]
    assert times(tmp_path / "one.pcapng", content) == wanted


def test_progress_counts_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "some.pcap"
    path.write_bytes(PLAIN + PLAIN[24:] * 2000)
    seen: list[int] = []
    capture.analyze([str(path)], progress=seen.append)
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size


def test_additional_ports(tmp_path: Path) -> None:
    net = Net(dport=5000)
    path = tmp_path / "port.pcap"
    wire = frames.transport("RC_SEND_ONLY", 1, 2, b"", b"abcd")
    path.write_bytes(files.pcap([(0, frames.frame(net, "a", wire))]))
    assert opcodes(path) == {}
    result = capture.analyze([str(path)], capture.Options(ports=[5000])).result
    assert result["icrc"]["ok"] == 1


def test_threads_do_not_change_the_result(tmp_path: Path) -> None:
    packets = []
    for seed in range(30):
        packets += lossy_wire.Wire(schedule.plan(seed, faults=2)).run()
    packets.sort(key=lambda packet: packet[0])
    path = tmp_path / "some.pcap"
    path.write_bytes(files.pcap(packets * 20))
    one = capture.analyze([str(path)], capture.Options(threads=1)).result
    assert capture.analyze([str(path)], capture.Options(threads=3)).result == one


# -- damaged ------------------------------------------------------------------------------------
POINTS = [10, pytest.param(200, marks=pytest.mark.slow)]
"""At how many places of each file it is damaged."""


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("points", POINTS)
def test_truncation_sweep(name: str, points: int, tmp_path: Path) -> None:
    """A file cut anywhere gives its complete packets or a clear error."""
    content = (CAPTURES / name).read_bytes()
    path = tmp_path / "cut"
    whole = capture.analyze([str(CAPTURES / name)]).result["input"]["packets"]
    last = 0
    for end in range(0, len(content), max(1, len(content) // points)):
        path.write_bytes(content[:end])
        try:
            result = capture.analyze([str(path)]).result
        except UsageError:
            continue
        assert last <= result["input"]["packets"] <= whole
        last = result["input"]["packets"]


def test_file_cut_while_it_is_read(tmp_path: Path) -> None:
    """It is an error, not the SIGBUS that a memory mapping would raise."""
    path = tmp_path / "shrinks.pcap"
    path.write_bytes(PLAIN + PLAIN[24:] * 4000)
    whole = capture.analyze([str(path)]).result["input"]["packets"]
    size = path.stat().st_size

    def cut(read: int) -> None:
        if read < size:
            os.truncate(path, 1000)

    result = capture.analyze([str(path)], capture.Options(threads=1), progress=cut).result
    assert 0 < result["input"]["packets"] < whole


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("points", POINTS)
def test_bit_flip_sweep(name: str, points: int, tmp_path: Path) -> None:
    """A flipped bit anywhere gives an analysis or a clear error."""
    content = (CAPTURES / name).read_bytes()
    path = tmp_path / "flipped"
    for at in range(0, len(content), max(1, len(content) // points)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            result = capture.analyze([str(path)]).result
        except UsageError:
            continue
        roce = result["roce"]
        nets = ("v1", "v2_ipv4", "v2_ipv6", "infiniband")
        assert roce["packets"] == sum(roce[net] for net in nets)
        assert sum(result["icrc"][key] for key in ("ok", "bad", "unchecked")) == roce["packets"]


@pytest.mark.parametrize("content", [b"", b"\n", b"\xd4\xc3\xb2\xa1", b"GIF89a" * 10, bytes(100)])
def test_a_file_that_is_no_capture_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "no"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        capture.analyze([str(path)])
    assert caught.value.cause
    assert caught.value.action


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        capture.analyze([str(tmp_path / "none")])


# -- hostile ------------------------------------------------------------------------------------
def peak(path: Path, *, icrc: bool = True) -> tuple[dict[str, Any], int]:
    """Analyse in a child process; return the result and its peak memory in bytes."""
    code = (
        "import json, sys\n"
        "from rocelab import capture\n"
        "from rocelab.errors import RocelabError\n"
        "options = capture.Options(threads=1, icrc=sys.argv[2] == 'True')\n"
        "try: r = capture.analyze(sys.argv[1:2], options).result\n"
        "except RocelabError as e: r = {'refused': e.cause}\n"
        "r.pop('connections', None)\n"
        # not ru_maxrss, which includes this process's memory at the fork
        "status = open('/proc/self/status').read()\n"
        "print(json.dumps([int(status.split('VmHWM:')[1].split()[0]), r]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(icrc)],
        capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True,
    )  # fmt: skip
    kib, result = json.loads(done.stdout)
    return result, kib * 1024


@pytest.mark.parametrize("kind", [6, 3, 1, 0x0A0D0D0A])
def test_absurd_block_length(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "absurd.pcapng"
    head = files.section() + files.interface()
    body = struct.pack("<I", 0x1A2B3C4D) if kind == 0x0A0D0D0A else b"\0" * 4
    path.write_bytes(head + struct.pack("<II", kind, 0xFFFFFFF0) + body + b"\0" * 64)
    with pytest.raises(UsageError) as caught:
        capture.analyze([str(path)])
    assert "corrupt" in caught.value.cause


def test_absurd_record_length(tmp_path: Path) -> None:
    path = tmp_path / "absurd.pcap"
    path.write_bytes(PLAIN + struct.pack("<IIII", 0, 0, 0xFFFFFFFF, 0xFFFFFFFF))
    result = capture.analyze([str(path)]).result
    assert result["input"]["packets"] == 11
    assert "corrupt after packet 11" in result["input"]["errors"][0]["error"]


def test_records_out_of_order_are_sorted_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "back.pcap"
    packets = [(index, data) for index, data in files_of(PLAIN)]
    path.write_bytes(
        files.pcap([(10**18 - index, data) for index, (_, data) in enumerate(packets)])
    )
    result = capture.analyze([str(path)]).result
    assert result["input"]["times_backwards"] == 0
    [condition] = [row for row in result["conditions"] if row["kind"] == "unsorted"]
    assert condition["detail"].startswith("10 records follow one with a later time")


def files_of(content: bytes) -> list[tuple[int, bytes]]:
    """The packets of a little-endian pcap with ns timestamps."""
    stream = io.BytesIO(content[24:])
    packets = []
    while head := stream.read(16):
        seconds, rest, kept, _ = struct.unpack("<IIII", head)
        packets.append((seconds * 10**9 + rest, stream.read(kept)))
    return packets


@pytest.mark.slow
def test_a_million_queue_pairs_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "many.pcap"
    wire = frames.transport("RC_SEND_ONLY", 0, 5, b"", b"abcd")
    frame = frames.frame(Net(), "a", wire)
    bth = len(frame) - 4 - len(wire)
    record = struct.pack("<IIII", 0, 0, len(frame), len(frame))
    with path.open("wb") as file:
        file.write(files.pcap([]))
        for start in range(0, 1 << 20, 1 << 14):
            file.write(b"".join(
                record + frame[: bth + 5] + qpn.to_bytes(3, "big") + frame[bth + 8 :]
                for qpn in range(start, start + (1 << 14))
            ))  # fmt: skip
    result, memory = peak(path, icrc=False)
    assert result["roce"]["packets"] == 1 << 20
    assert result["connections_evicted"] > 0
    assert result["connections_unreported"] > 0
    assert memory < 256 << 20


@pytest.mark.slow
def test_compressed_bomb(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(files.pcap([]))
        # endless empty records
        for _ in range(1600):
            file.write(bytes(1 << 20))
    result, memory = peak(path)
    error = result["input"]["errors"][0]["error"]
    assert "a thousand times" in error
    assert memory < 200 << 20


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    packets = files.pcap(lossy_wire.Wire(schedule.plan(3, faults=0)).run())
    sizes, peaks = [], []
    # both are larger than every buffer that fills up while reading
    for copies in (1000, 4000):
        path = tmp_path / f"{copies}.pcap"
        with path.open("wb") as file:
            file.write(packets)
            for _ in range(copies):
                file.write(packets[24:])
        sizes.append(path.stat().st_size)
        peaks.append(peak(path)[1])
    assert peaks[1] - peaks[0] < (sizes[1] - sizes[0]) / 20
    assert peaks[1] < 200 << 20


@pytest.mark.parametrize(
    ("net", "needed"), [(scenarios.V6, 74), (scenarios.V1, 66), (scenarios.V4, 54)]
)
def test_the_snap_length_that_is_needed(tmp_path: Path, net: Any, needed: int) -> None:
    packets = scenarios.stamp(scenarios.conversation(net))
    path = tmp_path / "capture"
    path.write_bytes(files.pcap(packets, snap=needed - 1))
    (condition,) = capture.analyze([str(path)]).result["conditions"]
    assert condition["kind"] == "cut_headers"
    assert f"at least {needed} bytes" in condition["detail"]
    path.write_bytes(files.pcap(packets, snap=needed))
    assert capture.analyze([str(path)]).result["roce"]["packets"] == len(packets)
