# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions and cycles per packet of the driver, plain and under probes, for `make bench`.

One machine, an event-driven loop of RDMA WRITEs between two rxe devices on a veth pair
(ebpf/rcloop). Instructions are counted under QEMU's -icount. Where KVM works, the same runs there
again and the processor counts cycles: a clock read is one instruction and many cycles. The stock
driver is the same source built the same way. Each module is loaded several times: now and then one
load is steadily costlier than the next, so what a probe adds is compared within one load. Exit
status 0, whether targets are met or not: the table says which.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import costs
from lab import LINE, Lab, empty_programs, histograms, kvm_works, lab

from rocelab.testbed import artifacts

SCHEMA = "rocelab.bench.probes/2"
ACCELERATORS = {"instructions": "icount", "cycles": "kvm"}
SIZES = (64, 4096)

Found = dict[int, dict[str, list[float]]]


def measure_stock(bench: Lab, samples: Found) -> None:
    """Measure one load of the stock driver: plain, bpftrace, libbpf fentry and fexit."""
    bench.load("stock", SIZES)
    script = histograms(bench.probeable())
    for size in SIZES:
        samples[size][costs.STOCK].append(bench.plain(size))
        samples[size][costs.LIBBPF].append(bench.rxestat(size)[0])
        samples[size][costs.BPFTRACE].append(bench.bpftrace(script, size))


def measure_builds(bench: Lab, samples: Found) -> None:
    """Measure one load of the driver with the fixes, and with our events switched off, too."""
    for variant, name in (("fixes", costs.FIXES), ("events", costs.BARE)):
        bench.load(variant, SIZES)
        for size in SIZES:
            samples[size][name].append(bench.plain(size))


def measure_instrumented(bench: Lab, samples: Found) -> dict[int, dict[str, Any]]:
    """Measure one load of our driver: events off, on unread, rxestat, rxetop, rxedump."""
    bench.load("instrumented", SIZES)
    documents: dict[int, dict[str, Any]] = {}
    for size in SIZES:
        samples[size][costs.OFF].append(bench.plain(size))
        for event in costs.EVENTS:
            alone = bench.bpftrace(empty_programs(event), size)
            samples[size][costs.ALONE[event]].append(alone)
        samples[size][costs.EMPTY].append(bench.bpftrace(empty_programs(*costs.STAMPS), size))
        cost, documents[size] = bench.rxestat(size)
        samples[size][costs.STAT].append(cost)
        samples[size][costs.XMIT].append(bench.rxestat(size, "--xmit")[0])
        samples[size][costs.WORK].append(bench.rxestat(size, "--work-requests")[0])
        samples[size][costs.GROUPED].append(bench.rxestat(size, "--group", "netns")[0])
        samples[size][costs.TOP].append(bench.rxetop(size))
        samples[size][costs.TOP_SAMPLED].append(bench.rxetop(size, "--sample", "16"))
        samples[size][costs.SAMPLED].append(bench.rxestat(size, "--sample", "16")[0])
        samples[size][costs.DUMP].append(bench.rxedump(size))
    return documents


def measure_unit(unit: str, loads: int) -> dict[str, Any]:
    """Measure in this unit; print the tables and return them as JSON values."""
    samples: Found = {size: defaultdict(list) for size in SIZES}
    with lab(unit) as bench:
        for number in range(loads):
            print(f"{unit}: load {number + 1} of {loads}", file=sys.stderr)
            measure_stock(bench, samples)
            measure_builds(bench, samples)
            documents = measure_instrumented(bench, samples)
        kernel = bench.machine.run(["uname", "-rv"]).stdout.strip()
    sizes: dict[str, Any] = {}
    for size in SIZES:
        bounds: list[costs.Target] = []
        if unit == "instructions":
            # the targets are in instructions, and rxestat states its programs' cost in them
            bounds = costs.targets(samples[size], costs.parts_of(samples[size], documents[size]))
        sizes[str(size)] = costs.as_json(samples[size], bounds)
        print(costs.text(size, unit, samples[size], bounds), end="\n\n")
    return {"accelerator": ACCELERATORS[unit], "kernel": kernel, "sizes": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loads", type=int, default=3, help="of each module")
    default = artifacts.build_dir() / "bench" / "probes.json"
    parser.add_argument("--out", type=Path, default=default, help="JSON result")
    options = parser.parse_args()
    units = ["instructions"]
    if kvm_works():
        units.append("cycles")
    else:
        print("no cycles are counted: KVM does not work here", file=sys.stderr)
    document = {
        "schema": SCHEMA,
        "patch_id": artifacts.driver(LINE).patch_id,
        "units": {unit: measure_unit(unit, options.loads) for unit in units},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(options.out)


if __name__ == "__main__":
    main()
