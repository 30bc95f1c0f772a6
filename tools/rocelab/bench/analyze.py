# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets per second of the analyzer, tshark and capinfos, side by side: `make bench` runs this.

Every program reads the same files of distinct packets (PSNs and payloads differ), one after the
other on one machine in one run. Start-up is measured on a file of one packet and subtracted. Each
number is the best of the repetitions: the others were disturbed. By wall time nothing here is worth
printing unless the machine is otherwise idle; rates per second of CPU time suffer less.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
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
"""tshark's rate does not depend on the length; it is too slow for the whole file."""


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
    """The best of some runs of one program."""

    wall: float
    cpu: float
    """User and system time of all its threads: what a busy machine disturbs less."""


def rate(count: int, whole: float, start_up: float) -> float | None:
    """Per second beyond start-up; None where that is too little of the whole to be told from it."""
    net = whole - start_up
    return count / net if net > whole / 10 else None


def ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 2) if one and other else None


def cost(argv: list[str], repeat: int) -> Cost:
    wall = cpu = float("inf")
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    program = shutil.which(argv[0]) or argv[0]
    for _ in range(repeat):
        start = time.perf_counter()
        pid = os.posix_spawn(program, argv, os.environ, file_actions=null)
        _, status, usage = os.wait4(pid, 0)
        wall = min(wall, time.perf_counter() - start)
        cpu = min(cpu, usage.ru_utime + usage.ru_stime)
        if code := os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{' '.join(argv)}: exit code {code}")
    return Cost(wall, cpu)


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


def measure(folder: Path, size: int, packets: int, repeat: int, crc: Path) -> dict[str, object]:
    big, single, few = folder / "big.pcap", folder / "one.pcap", folder / "few.pcap"
    length = write(big, packets, size)
    write(single, 1, size)
    write(few, TSHARK_PACKETS, size)
    own = [sys.executable, "-m", "rocelab.cli", "analyze", "--json"]
    if (script := Path(sys.executable).with_name("rocelab")).exists():
        own = [str(script), "analyze", "--json"]
    programs: dict[str, tuple[list[str], Path, int]] = {}
    for threads in (1, 2):
        for icrc in ("--icrc", "--no-icrc"):
            words = [*own, icrc, "--threads", str(threads)]
            programs[f"rocelab {icrc} threads={threads}"] = (words, big, packets)
    if shutil.which("tshark"):
        words = ["tshark", "-n", "-Y", "infiniband", "-z", "io,stat,0", "-q", "-r"]
        programs["tshark"] = (words, few, TSHARK_PACKETS)
    if shutil.which("capinfos"):
        programs["capinfos"] = (["capinfos", "-c"], big, packets)
    programs["plain CRC-32 (crc32fast)"] = ([str(crc)], big, packets)
    rates: dict[str, float | None] = {}
    cpu_rates: dict[str, float | None] = {}
    for name, (words, path, count) in programs.items():
        whole, start_up = cost([*words, str(path)], repeat), cost([*words, str(single)], repeat)
        rates[name] = rate(count, whole.wall, start_up.wall)
        cpu_rates[name] = rate(count, whole.cpu, start_up.cpu)
    ours, plain = "rocelab --icrc threads=1", "plain CRC-32 (crc32fast)"
    tshark = {
        kind: ratio(table[ours], table["tshark"])
        for kind, table in (("wall", rates), ("cpu", cpu_rates)) if "tshark" in table
    }  # fmt: skip
    return {
        "payload_bytes": size, "frame_bytes": length, "packets": packets,
        "packets_per_second": {name: one and round(one) for name, one in rates.items()},
        "packets_per_cpu_second": {name: one and round(one) for name, one in cpu_rates.items()},
        "zlib_crc32_bytes_per_second": round(zlib_rate(big)),
        "times_tshark": tshark,
        "share_of_plain_crc32": {
            "wall": ratio(rates[ours], rates[plain]),
            "cpu": ratio(cpu_rates[ours], cpu_rates[plain]),
        },
        "two_threads_over_one": ratio(rates["rocelab --icrc threads=2"], rates[ours]),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=3_000_000, help="of 64 bytes")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: the machine is busy (load {load:.1f}); these numbers are not worth much",
              file=sys.stderr)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="rocelab-bench-") as name:
        sizes = ((64, options.packets), (4096, options.packets // 10))
        crc = plain_crc()
        rows = [measure(Path(name), size, count, options.repeat, crc) for size, count in sizes]
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cpu = models[0] if models else platform.processor()
    print(json.dumps({"cpu": cpu, "load_before": load, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
