# SPDX-License-Identifier: GPL-2.0-or-later
"""Count what a packet costs on one machine: load a driver, run a loop with or without probes.

The clock of an emulated machine counts instructions. Under KVM the processor counts cycles.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rocelab import kernel_lines
from rocelab.plans.catalog import PROBE_PROGRAMS
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import (
    PROBE_DIR,
    add_device,
    install_probes,
    remove_device,
    unload,
)
from rocelab.testbed.qemu import accelerator_probe
from rocelab.testbed.veth import veth_testbed as veth
from rocelab.testbed.veth.veth_testbed import VethTestbed

LINE = kernel_lines.DEFAULT_LINE
LOOP = "rcloop"
BATCHES = 40
_MEDIANS = {"instructions": "ns", "cycles": "cycles"}
"""What rcloop calls the figure of each unit."""
_RESULT = "/run/rocelab/bench"

FUNCTIONS = (
    *("rxe_requester", "rxe_init_packet", "rxe_prepare", "copy_data", "rxe_mr_copy"),
    *("rxe_icrc_generate", "rxe_xmit_packet", "rxe_udp_encap_recv", "rxe_rcv", "rxe_icrc_check"),
    "rxe_cq_post",
)
"""What a user of the stock driver would probe; those that the compiler left are."""


def empty_programs(*events: str) -> str:
    """Return a bpftrace script that attaches to these events and does nothing."""
    return "\n".join(f"rawtracepoint:{event} /0/ {{ @ = 1; }}" for event in events)


def histograms(functions: tuple[str, ...]) -> str:
    """Return a bpftrace script with a histogram of the time in each of these functions."""
    return "\n".join(
        f"fentry:rdma_rxe:{f} {{ @began_{f}[tid] = nsecs; }}\n"
        f"fexit:rdma_rxe:{f} /@began_{f}[tid]/ "
        f"{{ @{f} = hist(nsecs - @began_{f}[tid]); delete(@began_{f}[tid]); }}"
        for f in functions
    )


class Lab:
    """The machine, and what it costs to send a packet on it."""

    def __init__(self, testbed: VethTestbed, unit: str) -> None:
        self._ends = testbed.nodes
        self._median = re.compile(rf"median_{_MEDIANS[unit]}=(\d+\.\d+)")
        self.machine: Node = testbed.nodes[0].machine
        devices = (end.device for end in self._ends)
        self._loop = (f"{PROBE_DIR}/{LOOP}", *devices)

    def load(self, variant: str, sizes: Sequence[int]) -> None:
        """Reload a build of the driver, create both devices, and run the loop unrecorded.

        The first packets of each size fill caches, and would make the first configuration costlier.
        """
        for end in self._ends:
            remove_device(end)
        unload(self.machine)
        self.machine.run(["insmod", f"{_RESULT}/{variant}.ko"])
        for end in self._ends:
            add_device(end)
        for size in sizes:
            self.plain(size)

    def plain(self, size: int) -> float:
        """Count what a WRITE and its ACK cost."""
        return self._run(self._argv(size))

    def bpftrace(self, script: str, size: int) -> float:
        """Count them with a bpftrace script attached."""
        return self._run(("bpftrace", "-e", script, "-c", " ".join(self._argv(size))))

    def rxestat(self, size: int, *options: str) -> tuple[float, dict[str, object]]:
        """Count them with rxestat attached; return its document too."""
        result = f"{_RESULT}/rxestat.json"
        words = ("rxestat", "--json", "--output", result, *options, "--", *self._argv(size))
        cost = self._run(words)
        document: dict[str, object] = json.loads(self.machine.run(["cat", result]).stdout)
        return cost, document

    def rxetop(self, size: int, *options: str) -> float:
        """Count them with rxetop attached, which looks every two seconds."""
        return self._run(("rxetop", "--json", *options, "--", *self._argv(size)))

    def rxedump(self, size: int) -> float:
        """Count them while rxedump writes the headers of every packet into memory."""
        words = ("rxedump", "--snapshot-length", "128", "--write", f"{_RESULT}/rxedump.pcapng")
        process = self.machine.start(words)
        try:
            process.wait_for_line("rxedump: ready", timeout=300)
            cost = self._run(self._argv(size))
            process.interrupt()
            process.wait(timeout=300)
        finally:
            process.kill()
        return cost

    def probeable(self) -> tuple[str, ...]:
        """Return those of FUNCTIONS that the loaded driver has."""
        listed = self.machine.run(["bpftrace", "-l", "fentry:rdma_rxe:*"], timeout=300).stdout
        there = {line.rpartition(":")[2].strip() for line in listed.splitlines()}
        return tuple(f for f in FUNCTIONS if f in there)

    def _argv(self, size: int) -> tuple[str, ...]:
        return (*self._loop, str(size), str(BATCHES))

    def _run(self, argv: tuple[str, ...]) -> float:
        match = self._median.search(self.machine.run(argv, timeout=900).stdout)
        if match is None:
            raise SystemExit(
                f"`{' '.join(argv)[:80]}` printed no {self._median.pattern.partition('=')[0]}: "
                "does this machine count cycles? (a virtual one needs a PMU)"
            )
        return float(match[1])


def kvm_works() -> bool:
    """Say whether a machine may run on the real processor, which counts cycles."""
    return accelerator_probe.choose(artifacts.image(LINE)) == "kvm"


@contextmanager
def lab(unit: str) -> Iterator[Lab]:
    """Boot the machine, install drivers and probes on it, and take it down at the end.

    `unit` is "instructions" (emulated) or "cycles" (KVM).
    """
    counts = unit == "instructions"
    testbed = veth.up(f"bench-{os.getpid()}", line=LINE, mtu=4200, icount=counts, lifeline=True)
    try:
        machine = testbed.nodes[0].machine
        machine.run(["mkdir", "-p", _RESULT])
        for variant in ("stock", "fixes", "events", "instrumented"):
            machine.put(artifacts.driver(LINE, variant).module, f"{_RESULT}/{variant}.ko")
        install_probes(machine, [artifacts.probe(name, LINE) for name in (LOOP, *PROBE_PROGRAMS)])
        # brings in what the module depends on
        machine.run(["modprobe", "rdma_rxe"])
        yield Lab(testbed, unit)
    finally:
        testbed.down()
