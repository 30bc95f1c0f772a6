# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets per second of the analyzer, tshark and capinfos, side by side: `make bench` runs this.

Every program reads the same files of distinct packets (PSNs and payloads differ), in turns: each
round runs all of them, on one machine. Start-up is measured on a file of one packet and subtracted
(the least of all rounds). Rates are given as the best round's, the quartiles, and the worst's.
Comparisons are of the best rounds, of the medians, and round by round: the median, least and
greatest of the rounds' own figures, which a machine that is slower for a while, or for one
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
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import rc_traffic

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = ROOT / "tools/rocelab/Cargo.toml"

TSHARK_PACKETS = 200_000
"""tshark's rate does not depend on the file's length, and it is too slow for the whole file."""
PLAIN_CRC = "plain CRC-32 (crc32fast)"
TWO_PROCESSES = "rocelab --icrc threads=1, two processes"


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
    """All processes together."""
    processes: int = 1
    """Run at once, each with all of the capture."""

    def run(self, capture: Path) -> Cost:
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        argv = [*self.words, str(capture)]
        program = shutil.which(argv[0]) or argv[0]
        start = time.perf_counter()
        pids = [
            os.posix_spawn(program, argv, os.environ, file_actions=null)
            for _ in range(self.processes)
        ]
        ends = [os.wait4(pid, 0) for pid in pids]
        wall = time.perf_counter() - start
        for _, status, _ in ends:
            if code := os.waitstatus_to_exitcode(status):
                raise SystemExit(f"{' '.join(argv)}: exit code {code}")
        return Cost(wall, sum(usage.ru_utime + usage.ru_stime for _, _, usage in ends))


@dataclass(frozen=True)
class Row:
    """A kind of traffic."""

    name: str
    part: int = 5
    """The share of the packets, as a divisor."""
    threads: bool = False
    """Measure two threads, too, and two processes, which no number of threads can outdo."""
    no_icrc: bool = False
    """Measure without ICRC, too."""


ROWS = [
    Row("one connection, 64 B", part=1, threads=True, no_icrc=True),
    Row("one connection, 4 KiB", part=30, threads=True, no_icrc=True),
    Row("64 QPs, an ACK each", threads=True),
    Row("64 QPs, IPv6"),
    Row("64 QPs, RoCE v1"),
    Row("64 QPs, VLAN"),
    Row("64 QPs, mixed", part=20, threads=True),
    Row("10,000 QPs, an ACK each", threads=True),
]


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


def programs(folder: Path, row: Row, packets: int, crc: Path) -> dict[str, Program]:
    """What is compared."""
    big, few = folder / "big.pcap", folder / "few.pcap"
    rc_traffic.write(big, rc_traffic.TRAFFIC[row.name], packets)
    rc_traffic.write(few, rc_traffic.TRAFFIC[row.name], TSHARK_PACKETS)
    own = [sys.executable, "-m", "rocelab.cli", "analyze", "--json"]
    if (script := Path(sys.executable).with_name("rocelab")).exists():
        own = [str(script), "analyze", "--json"]
    table = {
        f"rocelab {icrc} threads={threads}": Program(
            [*own, icrc, "--threads", str(threads)], big, packets
        )
        for threads in ((1, 2) if row.threads else (1,))
        for icrc in (("--icrc", "--no-icrc") if row.no_icrc else ("--icrc",))
    }
    if row.threads:
        table[TWO_PROCESSES] = Program(
            [*own, "--icrc", "--threads", "1"], big, 2 * packets, processes=2
        )
    if shutil.which("tshark"):
        words = ["tshark", "-n", "-Y", "infiniband", "-z", "io,stat,0", "-q", "-r"]
        table["tshark"] = Program(words, few, TSHARK_PACKETS)
    if shutil.which("capinfos"):
        table["capinfos"] = Program(["capinfos", "-c"], big, packets)
    table[PLAIN_CRC] = Program([str(crc)], big, packets)
    return table


def measure(folder: Path, row: Row, packets: int, repeat: int, crc: Path) -> dict[str, object]:
    single = folder / "one.pcap"
    rc_traffic.write(single, rc_traffic.TRAFFIC[row.name], 1)
    table = programs(folder, row, packets, crc)
    capture = folder / "big.pcap"
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
        "traffic": row.name, "packets": packets,
        "bytes_per_packet": round(capture.stat().st_size / packets, 1),
        "packets_per_second": {name: spread(each) for name, each in wall.items()},
        "packets_per_cpu_second": {name: spread(each) for name, each in cpu.items()},
        "zlib_crc32_bytes_per_second": round(zlib_rate(capture)),
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
        "two_threads_over_one": ratio(wall.get("rocelab --icrc threads=2"), wall[ours]),
        "two_processes_over_one": ratio(wall.get(TWO_PROCESSES), wall[ours]),
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
        crc = plain_crc()
        rows = [
            measure(Path(name), row, options.packets // row.part, options.repeat, crc)
            for row in ROWS
        ]
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cpu = models[0] if models else platform.processor()
    results = {
        "cpu": cpu, "processors": os.cpu_count(), "kernel": platform.release(),
        "versions": {program: version(program) for program in ("tshark", "capinfos", "rustc")},
        "repetitions": options.repeat, "load_before": load, "load_after": os.getloadavg()[0],
        "rows": rows,
    }  # fmt: skip
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
