# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets per second of the analyzer, tshark and capinfos, side by side: `make bench` runs this.

Every program reads the same files of distinct packets (PSNs and payloads differ), in turns: each
round runs all of them, on one machine. Start-up is measured on a file of one packet and subtracted
(the least of all rounds). Rates are given as the best round's, the quartiles, and the worst's.
Comparisons are of the best rounds, of the medians, and round by round: the median, least and
greatest of what each round says by itself, which a machine that is slower for a while, or for one
round, changes least. By wall time nothing here is worth printing unless the machine is otherwise
idle; rates per second of CPU time suffer less.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = ROOT / "tools/rocelab/Cargo.toml"
sys.path.insert(0, str(ROOT / "captures"))

from generator import crc, files, frames  # noqa: E402

TSHARK_PACKETS = 200_000
"""tshark's rate does not depend on the file's length, and it is too slow for the whole file."""
PLAIN_CRC = "plain CRC-32 (crc32fast)"


def write(path: Path, packets: int, size: int) -> int:
    """RC WRITEs of `size` bytes, all distinct, with right ICRCs; returns the bytes of a frame."""
    net = frames.Net()
    noise = os.urandom(size + 4096)
    headers = frames.reth(1 << 40, 7, size)
    first = frames.transport("RC_RDMA_WRITE_ONLY", 18, 0, headers, bytes(size))
    network, udp, _ = frames.layers(net, "a", first)
    lead = crc.pseudo_packet(net.kind, network, udp, first)[: -len(first)]
    # the generator's own CRC is slow on purpose; zlib's gives the same (tests say so)
    seed = zlib.crc32(lead)
    outer = frames.ethernet(net, net.address("a"), net.address("b"), network + udp)
    length = len(outer) + len(first) + 4
    with path.open("wb") as file:
        file.write(files.pcap([]))
        rows = []
        for index in range(packets):
            psn = (index & 0xFFFFFF).to_bytes(3, "big")
            start = index % 4096
            rest = headers + noise[start : start + size]
            code = zlib.crc32(rest, zlib.crc32(first[:4] + b"\xff" + first[5:9] + psn, seed))
            seconds, micros = divmod(index, 1_000_000)
            head = struct.pack("<IIII", 1_700_000_000 + seconds, micros * 1000, length, length)
            rows.append(head + outer + first[:9] + psn + rest + code.to_bytes(4, "little"))
            if len(rows) == 4096:
                file.write(b"".join(rows))
                rows.clear()
        file.write(b"".join(rows))
    return length


@dataclass(frozen=True)
class Cost:
    """The seconds that one run of a program took."""

    wall: float
    cpu: float
    """User and system time of all threads, which a busy machine affects less."""


@dataclass(frozen=True)
class Program:
    """What is run, on a capture of so many packets."""

    words: list[str]
    capture: Path
    packets: int

    def run(self, capture: Path) -> Cost:
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        argv = [*self.words, str(capture)]
        start = time.perf_counter()
        pid = os.posix_spawn(shutil.which(argv[0]) or argv[0], argv, os.environ, file_actions=null)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - start
        if code := os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{' '.join(argv)}: exit code {code}")
        return Cost(wall, usage.ru_utime + usage.ru_stime)


def rates(packets: int, whole: list[float], start_up: list[float]) -> list[float] | None:
    """Packets per second beyond the least start-up, round by round; None: too few to be told."""
    least = min(start_up)
    if min(whole) - least < min(whole) / 10:
        return None
    return [packets / (one - least) for one in whole]


def spread(each: list[float] | None) -> dict[str, int] | None:
    """Of the rounds."""
    if not each:
        return None
    low, median, high = statistics.quantiles(each, n=4, method="inclusive")
    values = {"best": max(each), "upper_quartile": high, "median": median, "lower_quartile": low,
              "worst": min(each)}  # fmt: skip
    return {name: round(value) for name, value in values.items()}


def ratio(one: list[float] | None, other: list[float] | None) -> dict[str, float] | None:
    """How many times the other: by the best rounds, by the medians, and round by round."""
    if not one or not other:
        return None
    rounds = [mine / its for mine, its in zip(one, other, strict=True)]
    values = {"best": max(one) / max(other),
              "median": statistics.median(one) / statistics.median(other),
              "by_round_median": statistics.median(rounds), "by_round_least": min(rounds),
              "by_round_greatest": max(rounds)}  # fmt: skip
    return {name: round(value, 2) for name, value in values.items()}


def zlib_rate(path: Path) -> float:
    """Bytes per second of zlib's CRC-32 over the file, read in pieces as the analyzer reads."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        code = 0
        with path.open("rb", buffering=0) as file:
            while piece := file.read(1 << 17):
                code = zlib.crc32(piece, code)
        best = min(best, time.perf_counter() - start)
    return path.stat().st_size / best


def plain_crc() -> Path:
    """The program that reads a file and computes its CRC-32 with crc32fast."""
    argv = ["cargo", "build", "-q", "--release", "--manifest-path", str(MANIFEST), "-p", "roce",
            "--example", "plain_crc", "--message-format", "json"]  # fmt: skip
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in text.splitlines()]
    return Path(next(row["executable"] for row in rows if row.get("executable")))


def programs(folder: Path, size: int, packets: int, crc: Path) -> tuple[dict[str, Program], int]:
    """What is compared, and the bytes of a frame."""
    big, few = folder / "big.pcap", folder / "few.pcap"
    length = write(big, packets, size)
    write(few, TSHARK_PACKETS, size)
    own = [sys.executable, "-m", "rocelab.cli", "analyze", "--json"]
    if (script := Path(sys.executable).with_name("rocelab")).exists():
        own = [str(script), "analyze", "--json"]
    table = {
        f"rocelab {icrc} threads={threads}": Program(
            [*own, icrc, "--threads", str(threads)], big, packets
        )
        for threads in (1, 2)
        for icrc in ("--icrc", "--no-icrc")
    }
    if shutil.which("tshark"):
        words = ["tshark", "-n", "-Y", "infiniband", "-z", "io,stat,0", "-q", "-r"]
        table["tshark"] = Program(words, few, TSHARK_PACKETS)
    if shutil.which("capinfos"):
        table["capinfos"] = Program(["capinfos", "-c"], big, packets)
    table[PLAIN_CRC] = Program([str(crc)], big, packets)
    return table, length


def measure(folder: Path, size: int, packets: int, repeat: int, crc: Path) -> dict[str, object]:
    single = folder / "one.pcap"
    write(single, 1, size)
    table, length = programs(folder, size, packets, crc)
    whole: dict[str, list[Cost]] = {name: [] for name in table}
    start_up: dict[str, list[Cost]] = {name: [] for name in table}
    for _ in range(repeat):
        for name, program in table.items():
            start_up[name].append(program.run(single))
            whole[name].append(program.run(program.capture))

    def per_second(kind: str) -> dict[str, list[float] | None]:
        def seconds(costs: list[Cost]) -> list[float]:
            return [getattr(one, kind) for one in costs]

        return {
            name: rates(program.packets, seconds(whole[name]), seconds(start_up[name]))
            for name, program in table.items()
        }

    wall, cpu = per_second("wall"), per_second("cpu")
    ours = "rocelab --icrc threads=1"
    return {
        "payload_bytes": size, "frame_bytes": length, "packets": packets,
        "packets_per_second": {name: spread(each) for name, each in wall.items()},
        "packets_per_cpu_second": {name: spread(each) for name, each in cpu.items()},
        "zlib_crc32_bytes_per_second": round(zlib_rate(folder / "big.pcap")),
        "times_tshark": {
            "wall": ratio(wall[ours], wall.get("tshark")),
            "cpu": ratio(cpu[ours], cpu.get("tshark")),
        },
        "times_capinfos": {
            "wall": ratio(wall[ours], wall.get("capinfos")),
            "cpu": ratio(cpu[ours], cpu.get("capinfos")),
        },
        "share_of_plain_crc32": {
            "wall": ratio(wall[ours], wall[PLAIN_CRC]),
            "cpu": ratio(cpu[ours], cpu[PLAIN_CRC]),
        },
        "two_threads_over_one": ratio(wall["rocelab --icrc threads=2"], wall[ours]),
    }  # fmt: skip


def version(program: str) -> str | None:
    """The first line of what it says of itself."""
    if not shutil.which(program):
        return None
    argv = [program, "--version"]
    text = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=30).stdout
    return text.splitlines()[0] if text else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=10_000_000,
                        help="of 64 bytes; that many take longer than the start-up")  # fmt: skip
    parser.add_argument("--repeat", type=int, default=9, help="rounds, two at least")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: the machine is busy (load {load:.1f}); these numbers are not worth much",
              file=sys.stderr)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="rocelab-bench-") as name:
        sizes = ((64, options.packets), (4096, options.packets // 30))
        crc = plain_crc()
        rows = [measure(Path(name), size, count, options.repeat, crc) for size, count in sizes]
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cpu = models[0] if models else platform.processor()
    found = {
        "cpu": cpu, "processors": os.cpu_count(), "kernel": platform.release(),
        "versions": {program: version(program) for program in ("tshark", "capinfos", "rustc")},
        "repetitions": options.repeat, "load_before": load, "load_after": os.getloadavg()[0],
        "rows": rows,
    }  # fmt: skip
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
