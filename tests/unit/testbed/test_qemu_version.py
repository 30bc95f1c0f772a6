# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's kernel goes without CMPXCHG16B where QEMU translates it wrongly, and nowhere else.

Where anything is translated, programs keep their addresses.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocelab import accelerators
from rocelab.testbed.qemu import machine_spec, qemu_version
from rocelab.testbed.qemu.machine_spec import NodeSpec, TestbedSpec

SPEC = TestbedSpec("t", "6.12", "/image", "icount", (NodeSpec(1, 2201, 1024, 4200),))
ENDS = {"data": 3, "peer": 4}
DEBIAN_12 = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)"
DEBIAN_13 = "QEMU emulator version 10.0.11 (Debian 1:10.0.11+ds-0+deb13u1)"


@pytest.mark.parametrize("accelerator", ["icount", "lockstep", "tcg"])
def test_emulation_before_version_8_is_affected(accelerator: accelerators.Name) -> None:
    for affected in (DEBIAN_12, "something else"):
        parameters = qemu_version.kernel_parameters(accelerator, affected)
        assert parameters == "norandmaps clearcpuid=cx16"
    for fixed in (DEBIAN_13, "QEMU emulator version 8.0.0"):
        assert qemu_version.kernel_parameters(accelerator, fixed) == "norandmaps"


def test_a_real_processor_is_not_affected() -> None:
    assert not qemu_version.kernel_parameters("kvm", DEBIAN_12)


def test_the_kernel_gets_the_parameters() -> None:
    spec = replace(SPEC, kernel_parameters="clearcpuid=cx16")
    argv = machine_spec.qemu_argv(spec, spec.nodes[0], Path("/state"), ENDS)
    assert "clearcpuid=cx16" in argv[argv.index("-append") + 1].split()
