# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze --follow` while another process writes a ring of files."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corpus import CAPTURES, files, lossy_wire, schedule
from polling import wait_until
from requirements import need_program
from rocelab import capture
from rocelab.cli.analyze import analyze
from rocelab.errors import ExitCode, UsageError

pytestmark = pytest.mark.slow

_LIMIT_S = 90
_WRITER = """
import os, sys, time
from pathlib import Path
source, target, size, names = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
parts = sorted(source.iterdir())
for number, part in enumerate(parts):
    data = part.read_bytes()
    with open(f"{target}{number % names}", "wb") as ring:
        for at in range(0, len(data), size):
            ring.write(data[at:at + size])
            ring.flush()
    # the writer is never further ahead than the ring is long
    while number >= names - 2 and sum(1 for _ in open(sys.argv[5])) < number - names + 3:
        time.sleep(0.02)
"""


def _records(seed: int) -> list[tuple[int, bytes]]:
    return list(lossy_wire.Wire(schedule.plan(seed, faults=3)).run())


def _parts(directory: Path, records: list[tuple[int, bytes]], count: int) -> list[Path]:
    """The capture in so many files."""
    directory.mkdir()
    size = len(records) // count + 1
    paths = []
    for number, at in enumerate(range(0, len(records), size)):
        path = directory / f"part{number:05}"
        path.write_bytes(files.pcap(records[at : at + size]))
        paths.append(path)
    return paths


@contextmanager
def _following(where: Path, output: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command, which has begun to look."""
    command = [sys.executable, "-m", "rocelab", "analyze", "--follow", str(where), *words]
    with (
        output.open("wb") as stdout,
        subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _wait(what: str, done: Callable[[], object]) -> None:
    wait_until(what, done, seconds=_LIMIT_S)


def _lines(output: Path) -> list[bytes]:
    return output.read_bytes().splitlines(keepends=True)


def _end(process: subprocess.Popen[bytes]) -> bytes:
    """Press Ctrl-C; return what it told."""
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=_LIMIT_S)
    return told


def _facts(result: dict[str, Any]) -> dict[str, Any]:
    """What is the same however the capture is divided into files."""
    kept = ("roce", "icrc", "opcodes", "overhead", "connections", "finding_counts", "series")
    text = json.dumps({key: result[key] for key in kept})
    facts: dict[str, Any] = json.loads(text, object_hook=_without_places)
    return facts


def _without_places(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in {"file", "packet", "until", "frames"}}


@pytest.mark.parametrize("names", [3, 100])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_ring_is_one_capture(names: int, threads: str, tmp_path: Path) -> None:
    """Files that are overwritten, and files that stay: all packets are followed, across files."""
    records = _records(11)
    parts = _parts(tmp_path / "parts", records, 9)
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(files.pcap(records))
    ring, output = tmp_path / "ring", tmp_path / "output"
    ring.mkdir()
    with _following(ring, output, "--json", "--threads", threads) as process:
        size = 200
        writer = [sys.executable, "-c", _WRITER, str(tmp_path / "parts"), str(ring / "r")]
        subprocess.run([*writer, str(size), str(names), str(output)], check=True, timeout=_LIMIT_S)
        _wait("all but the last are analyzed", lambda: len(_lines(output)) >= 8)
        _end(process)
    results = [json.loads(line) for line in _lines(output)]
    assert [row["input"]["files"][-1] for row in results] == [f"r{at % names}" for at in range(9)]
    for number, result in enumerate(results, 1):
        of_parts = capture.analyze([str(part) for part in parts[:number]]).result
        assert _facts(result) == _facts(of_parts), number
    assert _facts(results[-1]) == _facts(capture.analyze([str(whole)]).result)
    assert results[-1]["finding_counts"]


def test_a_ring_of_dumpcap(tmp_path: Path) -> None:
    need_program("dumpcap")
    records = _records(12)
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(files.pcap(records))
    ring, output = tmp_path / "ring", tmp_path / "output"
    ring.mkdir()
    each = len(records) // 6
    dumpcap = ["dumpcap", "-q", "-i", "-", "-w", str(ring / "r.pcapng"), "-b", f"packets:{each}"]
    with _following(ring, output) as process:
        with whole.open("rb") as source:
            subprocess.run(dumpcap, stdin=source, check=True, capture_output=True, timeout=_LIMIT_S)
        _wait("files are analyzed", lambda: b"_00006_" in output.read_bytes())
        assert b"not followed" not in _end(process)
    text = output.read_text()
    assert [line[:8] for line in text.splitlines()[:6]] == [f"r_{n:05}_" for n in range(1, 7)]
    assert f" {each} packets, {each} of RoCE" in text
    assert f"read         {len(records)} packets" in text


def test_the_last_file_is_read_as_far_as_it_is_written(tmp_path: Path) -> None:
    records = _records(11)
    part = files.pcap(records[:20])
    output = tmp_path / "output"
    ring = tmp_path / "ring"
    ring.mkdir()
    (ring / "r1").write_bytes(part)
    (ring / "r2").write_bytes(files.pcap(records[20:30])[:-7])
    with _following(ring, output, "--json") as process:
        _wait("the first is analyzed", lambda: _lines(output))
        assert b"r1: 20 packets, 20 of RoCE" in _end(process)
        assert process.returncode in {ExitCode.OK, ExitCode.FINDINGS}
    first, last = (json.loads(line) for line in _lines(output))
    assert (first["input"]["packets"], last["input"]["packets"]) == (20, 29)
    assert last["input"]["errors"] == []


def test_what_was_deleted_is_told(tmp_path: Path) -> None:
    records = _records(11)
    output = tmp_path / "output"
    ring = tmp_path / "ring"
    ring.mkdir()
    (ring / "notes").write_text("mine")

    def name(number: int) -> str:
        return f"r_{number:05}_2026112912{number:04}.pcap"

    with _following(ring, output, "--json") as process:
        for number in (1, 2):
            (ring / name(number)).write_bytes(files.pcap(records[number * 10 :][:10]))
        _wait("the first is analyzed", lambda: len(_lines(output)) == 1)
        for number in (5, 6):
            (ring / name(number)).write_bytes(files.pcap(records[number * 10 :][:10]))
        _wait("others are analyzed", lambda: len(_lines(output)) == 3)
        told = _end(process)
    last = json.loads(_lines(output)[-1])
    assert last["conditions"][0]["kind"] == "files_missed"
    assert last["conditions"][0]["detail"].startswith(f"2 file(s) before {name(5)} were deleted")
    assert b"2 file(s) before" in told
    assert b"notes is no capture: not followed" in told


def test_how_all_packets_are_read_is_known_from_the_first_file(tmp_path: Path) -> None:
    """No ICRC is right, which a reading of one file shows."""
    data = bytearray((CAPTURES / "icrc-zero.pcap").read_bytes())
    output = tmp_path / "output"
    for number in (1, 2, 3):
        (tmp_path / f"r{number}").write_bytes(data)
    with _following(tmp_path / "r*", output, "--json") as process:
        _wait("two are analyzed", lambda: len(_lines(output)) == 2)
        _end(process)
    alone = capture.analyze([str(CAPTURES / "icrc-zero.pcap")]).result
    last = json.loads(_lines(output)[-1])
    assert last["icrc"]["bad"] == 3 * alone["icrc"]["bad"] > 0


@pytest.mark.parametrize(
    "words",
    [
        ["x.pcap"], ["--merge"], ["--html", "x.html"], ["--parquet", "x"], ["--dask", "a"],
        ["--live", "lo"], ["--against", "x.pcap"],
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused(words: list[str], tmp_path: Path) -> None:
    error = CliRunner().invoke(analyze, ["--follow", str(tmp_path), *words]).exception
    assert isinstance(error, UsageError)


def test_nothing_was_written(tmp_path: Path) -> None:
    output = tmp_path / "output"
    ring = tmp_path / "ring"
    ring.mkdir()
    (ring / "notes").write_text("mine")
    with _following(ring, output) as process:
        _wait("it looks", lambda: b"notes" in output.read_bytes())
        assert b"there is no capture" in _end(process)
        assert process.returncode == ExitCode.USAGE


def test_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    """The parts of a long capture are open one after the other."""
    records = _records(11)
    parts = _parts(tmp_path / "parts", records, 200)
    assert len(parts) > 128
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        merged = capture.analyze([str(part) for part in parts]).result
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(files.pcap(records))
    alone = capture.analyze([str(whole)]).result
    assert _facts(merged) == _facts(alone)
    assert merged["input"]["errors"] == []
    assert [row["kind"] for row in merged["conditions"]] == ["disjoint"]
