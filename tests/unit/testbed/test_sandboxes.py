# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU and the builds of driver and probes may not do (SECURITY.md)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rocelab.testbed.qemu import machine_spec
from rocelab.testbed.qemu.machine_spec import NodeSpec, TestbedSpec

ROOT = Path(__file__).resolve().parents[3]


def test_qemu_starts_no_program_and_serves_nobody_else() -> None:
    spec = TestbedSpec("t", "6.12", "/image", "tcg", (NodeSpec(1, 2201, 1024, 4200),))
    argv = machine_spec.qemu_argv(spec, spec.nodes[0], Path("/state"), {"data": 3, "peer": 4})
    denied = argv[argv.index("-sandbox") + 1].split(",")
    assert denied[0] == "on"
    assert {"elevateprivileges=deny", "spawn=deny", "resourcecontrol=deny"} <= set(denied)
    (control,) = [word for word in argv if word.startswith("user,")]
    assert "restrict=on" in control
    assert control.count("hostfwd=") == control.count("hostfwd=tcp:127.0.0.1:") == 1


@pytest.mark.parametrize("target", ["module", "probes", "changed-module", "mpibench", "pingpong"])
def test_builds_have_no_network_and_write_nothing_else(target: str) -> None:
    done = subprocess.run(
        ["make", "-n", "-C", str(ROOT), "LINE=6.12", "SKIP_APT=1", "OUT=/out", target],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.replace("\\\n", " ").splitlines()
    builds = [line for line in lines if "bwrap-anywhere" in line]
    assert builds
    for line in builds:
        assert "--unshare-net" in line
        assert "--clearenv" in line
        bound = line.split(" --bind ")[1:]
        assert len(bound) == 1, line
        assert bound[0].split()[1] == "/rocelab/build"
