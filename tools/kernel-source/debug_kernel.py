#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Build a debug kernel (debug.config: KASAN, lockdep, kmemleak) for a node image.

The image's compiler builds it, inside the image's root, from the source package of the image's
kernel. Builds are cached by a hash of source, configuration and compiler. `--out` becomes a folder
like those of tools/node/build.py, with this kernel. The driver is built against `kernel` in it,
which must be mounted at MOUNT, where the kernel was built.
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
BWRAP = HERE.parent / "setup/bwrap-anywhere"
CONFIG = HERE / "debug.config"
MOUNT = "/rocelab/build"
# packages whose versions also determine the result
COMPILERS = ("binutils", "gcc")
# from these, modprobe and depmod know what is built in
LISTINGS = ("modules.builtin", "modules.builtin.modinfo", "modules.order")
# While the kernel detects its processor's features, KASAN takes five levels of page tables for
# four, and reports each access of an interrupt: a slow machine does not get further. The levels are
# chosen before CONFIG_CMDLINE is there.
PARAMETERS = "no5lvl"


def say(text: str) -> None:
    """Report progress."""
    print(f"debug kernel: {text}", file=sys.stderr, flush=True)


def configuration(line: str) -> str:
    """Return debug.config, in which a line's own file replaces options and adds some."""
    own = CONFIG.with_name(f"debug-{line}.config")
    if not own.exists():
        return CONFIG.read_text()
    replaced = {name for name in map(option, own.read_text().splitlines()) if name}
    common = [each for each in CONFIG.read_text().splitlines() if option(each) not in replaced]
    return "\n".join(common) + "\n" + own.read_text()


def option(text: str) -> str | None:
    """Return the name of the option that a line of a configuration sets."""
    return text.split("=", 1)[0] if text.startswith("CONFIG_") else None


def kernel_hash(line: str, image: Path) -> str:
    """Return a hash of the kernel's source, configuration and compiler."""
    installed = (image / "packages.tsv").read_text().splitlines()
    inputs = [package for package in installed if package.split("\t")[0] in COMPILERS]
    inputs += [*source_version(image), configuration(line)]
    return hashlib.sha256("\n".join(inputs).encode()).hexdigest()[:16]


def in_root(root: Path, work: Path, *argv: str) -> None:
    """Run a program of the image without network; it may write only to `work`."""
    command = [str(BWRAP), "--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc"]
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


def check_config(options: str, config: Path) -> None:
    """Fail unless each line of the configuration is in effect: kconfig drops some silently."""
    got = set(config.read_text().splitlines())
    lost = [
        each
        for each in options.splitlines()
        if option(each) and not each.endswith("=n") and each not in got
    ]
    if lost:
        fail(
            f"the kernel's configuration lacks {', '.join(lost)}",
            "an option has a new name or a new dependency in this kernel",
            f"correct {CONFIG}, or what {CONFIG.with_name('debug-LINE.config')} replaces in it",
        )


def build(line: str, image: Path, target: Path) -> None:
    """Build the kernel in a temporary folder and rename it when complete."""
    work = target.with_name(f"{target.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    (work / "kbuild").mkdir(parents=True)
    say("fetching its source (a minute)")
    fetch(line, image, work / "source")
    compile_kernel(image / "root", work, configuration(line))
    work.rename(target)
    say("done")


def compile_kernel(root: Path, work: Path, options: str) -> None:
    """Configure and compile `work`/source into `work`/kbuild."""
    (work / CONFIG.name).write_text(options)
    make = ["nice", "-n", "19", "make", "-C", "source", f"O={MOUNT}/kbuild"]
    make += ["KBUILD_BUILD_USER=rocelab", "KBUILD_BUILD_HOST=rocelab"]
    in_root(root, work, *make, f"KCONFIG_ALLCONFIG={MOUNT}/debug.config", "allnoconfig")
    check_config(options, work / "kbuild/.config")
    say("compiling (10 to 20 minutes on two idle cores)")
    in_root(root, work, *make, f"-j{os.cpu_count()}", "bzImage", "modules")


def initramfs(image: Path, out: Path) -> None:
    """Write the image's initramfs with an empty list of modules to load: all are built in."""
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
    """Combine the image's files and the kernel in a folder like those of tools/node/build.py."""
    kbuild = kernel / "kbuild"
    shutil.rmtree(out, ignore_errors=True)
    (out / "modules").mkdir(parents=True)
    for name in ("root", "root.sqfs", "packages.tsv"):
        (out / name).symlink_to(image / name)
    (out / "kernel").symlink_to(kernel)
    (out / "vmlinuz").symlink_to(kbuild / "arch/x86/boot/bzImage")
    for name in LISTINGS:
        shutil.copy(kbuild / name, out / "modules")
    # only the build of the driver provides a module
    (out / "modules/modules.order").write_text("")
    initramfs(image, out / "initramfs.cpio")
    facts = json.loads((image / "image.json").read_text())
    release = (kbuild / "include/config/kernel.release").read_text().strip()
    facts |= {"kernel_release": release, "debug_kernel": kernel.name}
    facts |= {"kernel_parameters": PARAMETERS}
    (out / "image.json").write_text(json.dumps(facts, indent=1) + "\n")


def main() -> None:
    """Parse the command line and build what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--line", required=True)
    parser.add_argument("--image", type=Path, required=True, help="folder of tools/node/build.py")
    parser.add_argument("--cache", type=Path, required=True, help="folder for debug kernels")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    arguments = parser.parse_args()
    image = arguments.image.resolve()
    kernel = arguments.cache.resolve() / f"{arguments.line}-{kernel_hash(arguments.line, image)}"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    with (kernel.parent / f".{kernel.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kernel.exists():
            build(arguments.line, image, kernel)
        assemble(image, kernel, arguments.out)


if __name__ == "__main__":
    main()
