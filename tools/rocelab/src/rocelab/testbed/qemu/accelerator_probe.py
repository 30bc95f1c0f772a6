# SPDX-License-Identifier: GPL-2.0-or-later
"""Find out whether KVM works: /dev/kvm may exist and still never run a kernel."""

from __future__ import annotations

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from rocelab import accelerators
from rocelab.directory import Directory, read_named, temporary_folder
from rocelab.testbed.cache_folder import cache_dir
from rocelab.testbed.qemu.machine_spec import kernel_command_line

# the kernel prints this long before user space; with a working KVM that takes about a second
_SIGN_OF_LIFE = b"Linux version"
_LIMIT_SECONDS = 15


def _boots(image: Path) -> bool:
    with temporary_folder(prefix="rocelab-kvm-") as folder:
        console = Path(folder) / "console"
        argv = [
            "setpriv", "--pdeathsig", "KILL", "--",
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-machine", "q35,accel=kvm", "-cpu", "host", "-m", "256",
            "-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initramfs.cpio"),
            "-append", f"{kernel_command_line()} loglevel=7 rdinit=/none root=/dev/none",
            "-serial", f"file:{console}",
        ]  # fmt: skip
        try:
            # without a root file system the kernel panics and -no-reboot ends QEMU: success
            done = subprocess.run(
                argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_LIMIT_SECONDS,
                check=False,
            )  # fmt: skip
        except (subprocess.TimeoutExpired, OSError):
            return False
        return done.returncode == 0 and _SIGN_OF_LIFE in console.read_bytes()


def choose(image: Path, emulation: accelerators.Name = "icount") -> accelerators.Name:
    """Return `kvm` if KVM boots this kernel (cached until the next reboot), else `emulation`."""
    return "kvm" if _kvm_works(image) else emulation


def _kvm_works(image: Path) -> bool:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = hashlib.sha256(f"{boot}\0{image}".encode()).hexdigest()[:16]
    cached = cache_dir() / f"accelerator-{key}"
    try:
        return read_named(cached, limit=8) == b"kvm"
    except OSError:
        works = _boots(image)
        # without the cache the next command tries again
        with suppress(OSError), Directory.open(cached.parent, make=True) as folder:
            folder.write(cached.name, b"kvm" if works else b"none")
        return works
