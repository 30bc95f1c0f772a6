# SPDX-License-Identifier: GPL-2.0-or-later
"""What executes a node's instructions, and all that follows from it.

QEMU's options, processors, time limits, what the nodes' clocks count, and the words for it: one
row for each accelerator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Name = Literal["tcg", "kvm", "native", "icount", "lockstep"]
Counting = Literal["icount", "lockstep"]
"""Those that count instructions."""

INSTRUCTIONS = "instructions"
"""The unit of work on a clock that counts instructions."""

_EMULATED_CPU = "max,-erms,-fsrm"
"""Emulation executes, and counts, a turn for each byte of a `rep movsb`, which real processors copy
in blocks. Without these two flags the kernel copies and clears memory in words."""

QUANTUM_NS = 20_000
"""In lockstep, frames arrive at multiples of this virtual time, and neither machine is ahead by
more."""


@dataclass(frozen=True)
class Accelerator:
    """An accelerator and what depends on it."""

    name: str
    label: str
    """Name and meaning, in a few words."""
    heading: str
    """What a run's first line says about it."""
    caption: str
    """The sentence that each of its figures carries."""
    is_real_time: bool = False
    """Whether a node's clock tells real time. Otherwise no time is comparable with a real one."""
    counts_instructions: bool = False
    """Whether a node's clock advances by one nanosecond per instruction while the node works."""
    times_follow_host: bool = False
    """Whether times depend on when the host lets each machine run: then none is a finding."""
    qemu: tuple[str, ...] = ()
    """QEMU's options; none if it is not QEMU that runs the node."""
    cpu: str = "max"
    """QEMU's processor model."""
    veth_processors: int = 1
    """Processors of a machine that contains all ends. One each for two ends and for the driver's
    work queue, where processors run in parallel."""
    mpi_launch_seconds: int = 120
    """Time for mpirun to start its ranks on all nodes."""


_ROWS = (
    Accelerator(
        "native",
        label="native, the real machine",
        heading="native",
        caption="Accelerator: native. Measured on the real machine.",
        is_real_time=True,
        mpi_launch_seconds=20,
    ),
    Accelerator(
        "kvm",
        label="kvm, virtual machines on the real processor",
        heading="virtual machines (KVM)",
        caption="Accelerator: kvm. Measured in virtual machines on the real processor.",
        is_real_time=True,
        qemu=("-accel", "kvm"),
        cpu="host",
        veth_processors=3,
        mpi_launch_seconds=20,
    ),
    # One instruction takes one nanosecond. An idle machine follows the host's clock: with
    # sleep=off its clock would advance by minutes per second, and its TCP would give up on the SSH
    # of a busy host. Seed and time of day are the same in each boot, so hash chains are as long.
    Accelerator(
        "icount",
        label="icount, software emulation that counts instructions: no real times",
        heading="emulated (icount): work is counted in instructions, no time is real",
        caption=(
            "Accelerator: icount. The nodes were emulated in software with a clock that counts "
            "instructions. Work is given in instructions, and two runs agree. Waits, latencies and "
            "rates are in emulated time, which depends on how the host schedules the nodes."
        ),
        counts_instructions=True,
        times_follow_host=True,
        cpu=_EMULATED_CPU,
        qemu=(
            *("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=on"),
            *("-seed", "1", "-rtc", "base=2026-01-01,clock=vm"),
        ),
    ),
    # Two machines on one virtual clock (tools/lockstep): an idle one jumps to its next timer, which
    # is the end of the quantum at the latest.
    Accelerator(
        "lockstep",
        label="lockstep, software emulation on one clock that counts instructions: no real times",
        heading=(
            "emulated (lockstep): one instruction takes a nanosecond, frames arrive every "
            f"{QUANTUM_NS // 1000}\N{NO-BREAK SPACE}µs, no time is real"
        ),
        caption=(
            "Accelerator: lockstep. The nodes were emulated in software on one virtual clock, "
            f"on which an instruction takes a nanosecond and frames arrive every {QUANTUM_NS:,} "
            "ns. Work is given in instructions, and two runs agree. Latencies agree to a few "
            "percent; no time is a real machine's."
        ),
        counts_instructions=True,
        cpu=_EMULATED_CPU,
        qemu=(
            *("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"),
            *("-seed", "1", "-rtc", "base=2026-01-01,clock=vm"),
        ),
    ),
    # for tests, and in runs of old versions
    Accelerator(
        "tcg",
        label="tcg, software emulation: no real times",
        heading="emulated (TCG): no time is real",
        caption=(
            "Accelerator: tcg. The nodes were emulated in software, and their clocks told neither "
            "real time nor a number of instructions. Compare figures only within this run; they "
            "give no share of time."
        ),
        times_follow_host=True,
        cpu=_EMULATED_CPU,
        qemu=("-accel", "tcg"),
    ),
)
ACCELERATORS = {row.name: row for row in _ROWS}


def of(name: str) -> Accelerator:
    """Return what is known about an accelerator; an unknown one counts as emulation."""
    known = ACCELERATORS.get(name)
    if known is not None:
        return known
    return Accelerator(
        name,
        label=f"{name or 'unknown'}: not known to this version",
        heading=name or "unknown",
        caption=f"Accelerator: {name or 'unknown'}, which this version of rocelab does not know: "
        "treat these as emulated figures, not real time.",
        times_follow_host=True,
    )


def is_emulated(name: str) -> bool:
    """Say whether times under an accelerator are no real times; an unknown one counts as such."""
    return not of(name).is_real_time
