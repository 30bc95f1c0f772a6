# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets per second of tshark with and without the plugin: `make bench` runs this.

All runs read the same capture of distinct packets; in `commented` each has a comment of the
driver's costs. Rates are per second of CPU time (tshark dissects in one thread), so that other load
on the machine moves them less; start-up is measured on one packet and subtracted; each is the best
of its repetitions, which take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import analyze
from generator import files

PLUGIN = analyze.ROOT / "tools/wireshark/rocelab.lua"
COMMENT = (
    "rocelab/1 node=n1 dev=rxe0 dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 psn={psn} "
    "wqe_ns=41 alloc_ns=210 bth_ns=38 route_ns=12 net_ns=95 copy_ns=160 icrc_ns=88 xmit_ns=640"
)
_PLUGIN = ["-X", f"lua_script:{PLUGIN}"]
_ANY = ["-Y", "infiniband"]
RUNS = {
    "bare": _ANY,
    "plugin, ICRC off": [*_PLUGIN, "-o", "rocelab.check_icrc:FALSE", *_ANY],
    "plugin, ICRC on, nobody asks": [*_PLUGIN, *_ANY],
    "plugin, ICRC on, filtered on": [*_PLUGIN, "-Y", "rocelab.icrc.status == 1"],
}


def cpu_seconds(argv: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def add_comments(plain: Path, path: Path) -> None:
    """The frames of a capture that `analyze.write` made, all with a comment."""
    data = plain.read_bytes()
    at, rows = 24, [files.section(), files.interface()]
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        text = COMMENT.format(psn=len(rows) & 0xFFFFFF)
        rows.append(
            files.packet_block(len(rows) * 1000, data[at + 16 : at + 16 + size], comment=text)
        )
        at += 16 + size
    path.write_bytes(b"".join(rows))


def rates(path: Path, one: Path, packets: int, repeat: int) -> dict[str, int]:
    best: dict[tuple[str, Path], float] = {}
    for _ in range(repeat):
        for name, words in RUNS.items():
            for capture in (one, path):
                argv = ["tshark", "-n", "-q", "-z", "io,stat,0", *words, "-r", str(capture)]
                spent = cpu_seconds(argv)
                best[name, capture] = min(spent, best.get((name, capture), spent))
    return {name: round(packets / max(best[name, path] - best[name, one], 1e-9)) for name in RUNS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="rocelab-bench-") as name:
        folder = Path(name)
        one = folder / "one.pcap"
        analyze.write(one, 1, 64)
        for size in (64, 4096):
            plain = folder / f"{size}.pcap"
            analyze.write(plain, options.packets, size)
            captures = {"plain": plain}
            if size == 64:
                captures["commented"] = folder / "commented.pcapng"
                add_comments(plain, captures["commented"])
            for kind, path in captures.items():
                rates_by_profile = rates(path, one, options.packets, options.repeat)
                share = rates_by_profile["plugin, ICRC off"] / rates_by_profile["bare"]
                rows.append({"capture": kind, "payload_bytes": size, "packets": options.packets,
                             "packets_per_cpu_second": rates_by_profile,
                             "icrc_off_share_of_bare": round(share, 2)})  # fmt: skip
                path.unlink()
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True)
    print(json.dumps({"tshark": version.stdout.splitlines()[0], "load": os.getloadavg()[0],
                      "rows": rows}, indent=1))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
