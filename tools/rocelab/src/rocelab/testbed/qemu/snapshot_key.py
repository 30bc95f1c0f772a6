# SPDX-License-Identifier: GPL-2.0-or-later
"""What decides the state of a machine that has booted: a snapshot is known by the hash of it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from rocelab import accelerators
from rocelab.testbed.qemu import machine_spec
from rocelab.testbed.qemu.machine_spec import NodeSpec, TestbedSpec
from rocelab.testbed.qemu.qemu_version import qemu_version

_FORMAT = 1
"""Of the snapshot file, and of what is saved when."""
_IMAGE = ("image.json", "vmlinuz", "initramfs.cpio")


def machine(spec: TestbedSpec, node: NodeSpec) -> str:
    """Return the hash of what decides a machine's state before anything is installed on it.

    QEMU and its options, the image, and the host's processor where the machine depends on it. What
    differs between testbeds, such as ports and paths, is left out.
    """
    image = Path(node.image or spec.image)
    decisive = {
        "format": _FORMAT,
        "qemu": [qemu_version(), _stamp(Path(shutil.which("qemu-system-x86_64") or ""))],
        "argv": _argv(spec, node),
        "image": [_digest(image / name) for name in _IMAGE],
        "root": (image / "root.sqfs").stat().st_size,
        "processor": None if _is_portable(spec.accelerator) else _processor(),
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def key_with_preparation(machine_key: str, preparation: str) -> str:
    """Return the hash of a machine on which more was installed; `preparation`: the hash of that."""
    return hashlib.sha256(f"{machine_key} {preparation}".encode()).hexdigest()


def _argv(spec: TestbedSpec, node: NodeSpec) -> list[str]:
    """The machine's command line, with nothing of this testbed in it."""
    state = Path("/state")
    ends = {
        netdev: 0
        for stream in machine_spec.streams(spec)
        for name, netdev in stream
        if name == node.name
    }
    anywhere = TestbedSpec.from_json({**spec.to_json(), "name": ""})
    nowhere = NodeSpec(**{**vars(node), "ssh_port": 0, "snapshot": ""})
    argv = machine_spec.qemu_argv(anywhere, nowhere, state, ends)
    image = str(Path(node.image or spec.image))
    return [word.replace(image, "/image") for word in argv]


def _is_portable(accelerator: accelerators.Name) -> bool:
    """Whether a machine runs the same on any host: what counts instructions sees no processor."""
    return accelerators.of(accelerator).counts_instructions


def _processor() -> list[str]:
    """The host's processor: with KVM a machine has its features, and else the rate of its TSC."""
    fields = ("model name", "microcode", "flags")
    lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return [line for line in lines if line.startswith(fields)]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _stamp(program: Path) -> list[int]:
    status = program.stat()
    return [status.st_size, status.st_mtime_ns]
