#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Build a kernel that complains (debug.config: KASAN, lockdep, kmemleak) for a node image.

It is compiled in the image's own root, with its compiler, from the very source package that the
image's kernel came from, and kept by what decides it. `--out` becomes a folder like those of
tools/node/build.py, with this kernel; `kernel` in it is for building the driver, and has to lie at
MOUNT then, where it was built.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from source import fail, fetch, source_version

HERE = Path(__file__).resolve().parent
CONFIG = HERE / "debug.config"
MOUNT = "/rocelab/build"
# the packages whose version decides what comes out, beside the source
COMPILERS = ("binutils", "gcc")
# what modprobe and depmod ask for, to know what is built in
LISTINGS = ("modules.builtin", "modules.builtin.modinfo", "modules.order")


def say(text: str) -> None:
    """Progress."""
    print(f"debug kernel: {text}", file=sys.stderr, flush=True)


def kernel_hash(image: Path) -> str:
    """Hash of what decides the kernel: its source, its configuration, its compiler."""
    installed = (image / "packages.tsv").read_text().splitlines()
    decides = [line for line in installed if line.split("\t")[0] in COMPILERS]
    decides += [*source_version(image), CONFIG.read_text()]
    return hashlib.sha256("\n".join(decides).encode()).hexdigest()[:16]


def in_root(root: Path, work: Path, *argv: str) -> None:
    """Run a program of the image; it may write in `work` alone, and has no network."""
    command = ["bwrap", "--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc"]
    command += ["--tmpfs", "/tmp", "--bind", str(work), MOUNT, "--chdir", MOUNT]  # noqa: S108
    command += ["--unshare-net", "--unshare-pid", "--die-with-parent", "--clearenv"]
    command += ["--setenv", "PATH", "/usr/sbin:/usr/bin", "--setenv", "LC_ALL", "C.UTF-8"]
    log = work / "build.log"
    with log.open("a") as out:
        status = subprocess.run(
            [*command, *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        ).returncode
    if status:
        tail = "\n    ".join(log.read_text(errors="replace").splitlines()[-12:])
        fail(f"`{' '.join(argv)}` failed:\n    {tail}", "see the messages above", f"read {log}")


def check_config(config: Path) -> None:
    """Every line of kernel.config is in force: kconfig drops what it cannot have without a word."""
    got = set(config.read_text().splitlines())
    lost = [
        line
        for line in CONFIG.read_text().splitlines()
        if line.startswith("CONFIG_") and not line.endswith("=n") and line not in got
    ]
    if lost:
        fail(
            f"the kernel's configuration lacks {', '.join(lost)}",
            "an option has a new name or a new dependency in this kernel",
            f"mend {CONFIG}",
        )


def build(line: str, image: Path, target: Path) -> None:
    """Build the kernel aside, then rename it whole."""
    work = target.with_name(f"{target.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    (work / "kbuild").mkdir(parents=True)
    say("fetching its source, a minute")
    fetch(line, image, work / "source")
    compile_kernel(image / "root", work)
    work.rename(target)
    say("done")


def compile_kernel(root: Path, work: Path) -> None:
    """Configure and compile `work`/source into `work`/kbuild."""
    shutil.copy(CONFIG, work)
    make = ["nice", "-n", "19", "make", "-C", "source", f"O={MOUNT}/kbuild"]
    make += ["KBUILD_BUILD_USER=rocelab", "KBUILD_BUILD_HOST=rocelab"]
    in_root(root, work, *make, f"KCONFIG_ALLCONFIG={MOUNT}/debug.config", "allnoconfig")
    check_config(work / "kbuild/.config")
    say("compiling, 10 to 20 minutes on two idle cores")
    in_root(root, work, *make, f"-j{os.cpu_count()}", "bzImage", "modules")


def initramfs(image: Path, out: Path) -> None:
    """The image's own, and behind it an empty list of modules to load: all are built in."""
    with tempfile.TemporaryDirectory() as folder, out.open("wb") as target:
        (Path(folder) / "modules").mkdir()
        (Path(folder) / "modules/order").touch()
        target.write((image / "initramfs.cpio").read_bytes())
        target.flush()
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"],
            input=b"modules/order\n",
            stdout=target,
            cwd=folder,
            check=True,
        )


def assemble(image: Path, kernel: Path, out: Path) -> None:
    """The image's files and the kernel, in one folder as tools/node/build.py makes it."""
    kbuild = kernel / "kbuild"
    shutil.rmtree(out, ignore_errors=True)
    (out / "modules").mkdir(parents=True)
    for name in ("root", "root.sqfs", "packages.tsv"):
        (out / name).symlink_to(image / name)
    (out / "kernel").symlink_to(kernel)
    (out / "vmlinuz").symlink_to(kbuild / "arch/x86/boot/bzImage")
    for name in LISTINGS:
        shutil.copy(kbuild / name, out / "modules")
    # a module comes from the driver's build only
    (out / "modules/modules.order").write_text("")
    initramfs(image, out / "initramfs.cpio")
    facts = json.loads((image / "image.json").read_text())
    release = (kbuild / "include/config/kernel.release").read_text().strip()
    facts |= {"kernel_release": release, "debug_kernel": kernel.name}
    (out / "image.json").write_text(json.dumps(facts, indent=1) + "\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--line", required=True)
    parser.add_argument("--image", type=Path, required=True, help="folder of tools/node/build.py")
    parser.add_argument("--cache", type=Path, required=True, help="folder for debug kernels")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    arguments = parser.parse_args()
    image = arguments.image.resolve()
    kernel = arguments.cache.resolve() / f"{arguments.line}-{kernel_hash(image)}"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    with (kernel.parent / f".{kernel.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kernel.exists():
            build(arguments.line, image, kernel)
        assemble(image, kernel, arguments.out)


if __name__ == "__main__":
    main()
