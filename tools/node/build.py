#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the node image of a kernel line, once per recipe.

Prints the folder that holds it: `root.sqfs` (what nodes boot from), `vmlinuz`, `initramfs.cpio`,
`root/` (the same files unpacked: driver and probes are built in it), `packages.tsv` and
`image.json`. The folder's name is the hash of everything in this directory that decides its
content, so a changed recipe never meets an old image. Needs no root where user namespaces are
allowed (mmdebstrap's unshare mode).
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# the clock of every file in the image, so that equal packages give equal images
EPOCH = "1767225600"
# what the initramfs needs to reach the image, in Debian's kernels modules or built in
BOOT_MODULES = ("virtio_pci", "virtio_blk", "squashfs", "overlay")
# Drivers that a virtual machine can use. Without the 3,000 others, depmod, which every change of
# the driver needs, takes seconds under emulation instead of 40.
DRIVERS = (
    "block/loop", "block/null_blk", "block/virtio_blk", "char/hw_random", "firmware/qemu_fw_cfg",
    "infiniband/core", "infiniband/sw", "infiniband/ulp", "net/bonding", "net/dummy",
    "net/geneve", "net/ifb", "net/ipvlan", "net/macvlan", "net/net_failover", "net/netdevsim",
    "net/tun", "net/veth", "net/virtio_net", "net/vrf", "net/vxlan", "nvme/common", "nvme/host",
    "nvme/target", "virtio",
)  # fmt: skip


def fail(what: str, cause: str, action: str) -> None:
    """Say what failed, why probably, and what to do; end with exit code 3."""
    sys.exit(f"node image: {what}\n  likely cause: {cause}\n  what to do: {action}")


def recipe_hash(line: str) -> str:
    """Hash of the recipe: every file here except the other lines."""
    digest = hashlib.sha256()
    for path in sorted(HERE.rglob("*")):
        other_line = path.parent.name == "lines" and path.stem != line
        if not path.is_file() or other_line or "__pycache__" in path.parts or path.suffix == ".md":
            continue
        digest.update(str(path.relative_to(HERE)).encode() + b"\0")
        digest.update(f"{path.stat().st_mode & 0o111:o}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def packages() -> list[str]:
    """The package list, without comments."""
    lines = (
        line.split("#")[0].strip() for line in (HERE / "packages.txt").read_text().splitlines()
    )
    return [line for line in lines if line]


def bootstrap(recipe: dict[str, Any], tar: Path) -> None:
    """Make the root as a tar with mmdebstrap."""
    tests = "yes" if recipe["rdma_core_tests"] else "no"
    command = [
        "mmdebstrap",
        "--variant=minbase",
        "--format=tar",
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=Acquire::Retries "5"',
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/info/*",
        # /lib in Debian 12, /usr/lib in 13
        "--dpkgopt=path-exclude=*/lib/modules/*/kernel/drivers/*",
        "--dpkgopt=path-exclude=*/lib/modules/*/kernel/sound/*",
        *(f"--dpkgopt=path-include=*/lib/modules/*/kernel/drivers/{name}*" for name in DRIVERS),
        f"--include={','.join([*recipe['kernel'], *packages()])}",
        # Copied first: what runs in a user namespace may not enter its user's home.
        f"--customize-hook=copy-in {shlex.join([f'{HERE}/customize', f'{HERE}/files'])} /usr/src",
        f'--customize-hook=sh "$1/usr/src/customize" "$1" {tests}',
        recipe["suite"],
        str(tar),
    ]
    for url, suite in recipe["mirrors"]:
        command += [f"deb {url} {suite} main", f"deb-src {url} {suite} main"]
    log = tar.with_suffix(".log")
    with log.open("w") as out:
        status = subprocess.run(
            command,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            # INITRD=No: nodes boot with an initramfs of their own
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "LC_ALL": "C.UTF-8", "INITRD": "No"},
            check=False,
        ).returncode
    if status:
        tail = "\n    ".join(log.read_text(errors="replace").splitlines()[-12:])
        fail(
            f"mmdebstrap failed:\n    {tail}",
            "a mirror cannot be reached, or user namespaces are off",
            f"read {log}; without user namespaces run as root",
        )


def boot_modules(root: Path, release: str) -> list[Path]:
    """The boot modules and what they depend on, in the order to load them."""
    folder = root / "lib/modules" / release
    needs: dict[str, list[str]] = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        module, _, rest = line.partition(":")
        needs[module] = rest.split()
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in needs}
    order: list[str] = []
    built_in = (folder / "modules.builtin").read_text()
    for name in BOOT_MODULES:
        if name not in by_name and f"/{name}.ko" in built_in:
            continue
        # modules.dep lists the nearest dependency first
        for path in [*reversed(needs[by_name[name]]), by_name[name]]:
            if path not in order:
                order.append(path)
    return [folder / path for path in order]


def make_initramfs(root: Path, release: str, out: Path) -> None:
    """Busybox, the boot modules (unpacked: emulation is slow at it) and our init, as a cpio."""
    stage = out.with_suffix(".stage")
    for folder in ("bin", "dev", "image", "modules", "overlay", "root"):
        (stage / folder).mkdir(parents=True)
    shutil.copy(root / "usr/bin/busybox", stage / "bin/busybox")
    shutil.copy(HERE / "initramfs-init", stage / "init")
    names = []
    for module in boot_modules(root, release):
        data = module.read_bytes()
        name = module.name.removesuffix(".xz")
        (stage / "modules" / name).write_bytes(
            lzma.decompress(data) if module.suffix == ".xz" else data
        )
        names.append(name)
    (stage / "modules/order").write_text("\n".join(names) + "\n")
    files = sorted(str(path.relative_to(stage)) for path in stage.rglob("*"))
    for name in files:
        os.utime(stage / name, (int(EPOCH), int(EPOCH)))
    with out.open("wb") as target:
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc", "--reproducible", "-R", "0:0"],
            input="\n".join(files).encode(),
            stdout=target,
            cwd=stage,
            check=True,
        )
    shutil.rmtree(stage)


def build(line: str, target: Path) -> None:
    """Build everything aside, then rename it whole."""
    recipe = tomllib.loads((HERE / "lines" / f"{line}.toml").read_text())
    work = target.with_name(f"{target.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    tar = work / "root.tar"
    started = time.monotonic()

    def say(text: str) -> None:
        print(
            f"node image {line}: {text} ({time.monotonic() - started:.0f} s)",
            file=sys.stderr,
            flush=True,
        )

    say("installing Debian packages, about two minutes")
    bootstrap(recipe, tar)
    say("unpacking for builds")
    root = work / "root"
    root.mkdir()
    subprocess.run(
        ["tar", "-xf", tar, "-C", root, "--no-same-owner", "--exclude=./dev/*"], check=True
    )
    for mount_point in ("dev", "rocelab/src", "rocelab/build"):
        (root / mount_point).mkdir(parents=True, exist_ok=True)
    say("packing the image")
    with tar.open("rb") as source:
        subprocess.run(
            ["tar2sqfs", "-q", "-c", "lz4", "-f", work / "root.sqfs"], stdin=source, check=True
        )
    release = next((root / "lib/modules").iterdir()).name
    kernel_source = next((root / "usr/src").glob("linux-source-*")).name
    shutil.copy(root / "boot" / f"vmlinuz-{release}", work / "vmlinuz")
    make_initramfs(root, release, work / "initramfs.cpio")
    installed = subprocess.run(
        ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package}\t${Version}\n"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (work / "packages.tsv").write_text(installed)
    (work / "image.json").write_text(
        json.dumps(
            {
                "schema": "rocelab.image/1",
                "line": line,
                "recipe": target.name,
                "kernel_release": release,
                "suite": recipe["suite"],
                "kernel_source": kernel_source,
                "packages_sha256": hashlib.sha256(installed.encode()).hexdigest(),
            },
            indent=1,
        )
        + "\n"
    )
    tar.unlink()
    work.rename(target)
    say("done")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--line", required=True)
    parser.add_argument("--cache", type=Path, required=True, help="folder for images")
    arguments = parser.parse_args()
    known = sorted(path.stem for path in (HERE / "lines").glob("*.toml"))
    if arguments.line not in known:
        fail(
            f"no kernel line {arguments.line!r}",
            "a typing error",
            f"choose from {', '.join(known)}",
        )
    for tool in ("mmdebstrap", "tar2sqfs", "cpio", "dpkg-query"):
        if not shutil.which(tool):
            fail(f"{tool} is not installed", "set-up has not run", "run `make setup`")
    target = arguments.cache / f"{arguments.line}-{recipe_hash(arguments.line)}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            build(arguments.line, target)
    print(target)


if __name__ == "__main__":
    main()
