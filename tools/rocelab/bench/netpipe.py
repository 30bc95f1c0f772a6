# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare mpibench with NetPIPE, another ping-pong program: do their medians agree?

Two local ranks over TCP on loopback, native time, the two programs in turn. NetPIPE prints the
best of its three trials; mpibench times as many trials of as many round trips (`--trials`), and
the best of them stands here too. They agree at a size when the 95 % confidence intervals of both
medians overlap; exit status 1 when they do not. Needs Debian's netpipe-openmpi and openmpi-bin; an
idle machine gives intervals that say something.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rocelab.stats.summary import Spread, spread

ROOT = Path(__file__).resolve().parents[3]
TRIALS = 3
"""As many as Debian's NetPIPE 3.7.2 has built in: 50 round trips more are 300 messages more."""
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_plm": "isolated",
}


def mpirun(*words: str) -> str:
    """Return the standard output of two local ranks."""
    return subprocess.run(
        ["mpirun", "--bind-to", "none", "-n", "2", *words],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    ).stdout


def netpipe(folder: Path, size: int, times: int) -> float:
    """Return half a round trip in µs, from NetPIPE's file: bytes, Mbit/s, seconds."""
    out = folder / "np.out"
    size_words = ("-l", str(size), "-u", str(size), "-p", "0")
    mpirun("NPopenmpi", *size_words, "-n", str(times), "-o", str(out))
    (line,) = out.read_text().splitlines()
    measured_size, _, seconds = line.split()
    if int(measured_size) != size:
        sys.exit(f"NetPIPE measured {measured_size} bytes")
    return float(seconds) * 1e6


def mpibench(program: Path, size: int, times: int) -> float:
    """Half a round trip in µs, the best of as many trials."""
    words = ("--json", "-i", str(times), "-t", str(TRIALS), "-s", str(size), "latency")
    (row,) = json.loads(mpirun(str(program), *words))["results"]
    return float(min(row["trials_ns"])) / 1e3


def agree(one: Spread, other: Spread) -> bool:
    """Whether the intervals of both medians overlap; they are there from six values on."""
    if one.interval is None or other.interval is None:
        sys.exit("fewer than six repetitions give no interval")
    return one.interval.low <= other.interval.high and other.interval.low <= one.interval.high


def describe(spread: Spread) -> str:
    interval = spread.interval
    bounds = f" ({interval.low:.2f} to {interval.high:.2f})" if interval else ""
    return f"{spread.median:.2f}{bounds}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--times", type=int, default=500, help="round trips in a trial")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 1024, 16384])
    options = parser.parse_args()
    if not shutil.which("NPopenmpi"):
        sys.exit("NPopenmpi is not installed: apt-get install netpipe-openmpi openmpi-bin")
    failed = False
    with tempfile.TemporaryDirectory(prefix="rocelab-netpipe-") as name:
        folder = Path(name)
        subprocess.run(["make", "-s", "-C", ROOT / "tools/mpibench", f"O={folder}"], check=True)
        print(f"µs, best of {TRIALS} trials; median of {options.repetitions} (95 % interval)")
        print(f"{'bytes':>7}  {'NetPIPE':>26}  {'mpibench':>26}")
        for size in options.sizes:
            theirs, ours = [], []
            for _ in range(options.repetitions):
                theirs.append(netpipe(folder, size, options.times))
                ours.append(mpibench(folder / "mpibench", size, options.times))
            one, other = spread(theirs), spread(ours)
            good = agree(one, other)
            failed |= not good
            verdict = "agree" if good else "DIFFER"
            print(f"{size:>7}  {describe(one):>26}  {describe(other):>26}  {verdict}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
