# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot a kernel of Debian's pools on nodes of its line, with the driver that DKMS has built."""

from __future__ import annotations

import importlib.util
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from types import ModuleType

from driver_build import TOP, Target, in_root, runs

BUILD = Path(os.environ.get("ROCELAB_BUILD", TOP / "build"))
BENCHMARKS = ("drivercheck", "ebpf", "lockstep", "mpibench", "perftest", "pingpong")
TEST = TOP / "tests/vm/test_lines.py"
# /lib is a link to it, in the node's image too
MODULES = "usr/lib/modules"


def boots(target: Target, root: Path) -> bool:
    """Whether tests/vm/test_lines.py passes with the kernel and the driver in a root of DKMS.

    `make probes` must have built what else is on nodes of that line.
    """
    with tempfile.TemporaryDirectory(dir=target.tree.parent) as name:
        build = Path(name)
        for each in BENCHMARKS:
            (build / each).symlink_to(BUILD / each)
        driver = build / "kernel" / target.line / "instrumented"
        _take_driver(target, root, driver)
        _make_image(target, root, build / "image" / target.line)
        test = [f"{TOP}/.venv/bin/pytest", "-q", "-rA", "-p", "no:cacheprovider", str(TEST)]
        settings = {
            "CI": "true",  # what is missing fails the test
            "ROCELAB_BUILD": str(build),
            "ROCELAB_TEST_LINE": target.line,
            # saved machines go with it
            "XDG_CACHE_HOME": f"{build}/cache",
        }
        return runs(test, settings)


def _take_driver(target: Target, root: Path, out: Path) -> None:
    """Move the module to where nodes have theirs, for which depmod takes long under emulation."""
    modules = root / MODULES / target.release
    (module,) = (modules / "updates/dkms").glob("rdma_rxe.ko*")
    data = module.read_bytes()
    shutil.rmtree(module.parent)
    out.mkdir(parents=True)
    plain = out / "rdma_rxe.ko"
    plain.write_bytes(lzma.decompress(data) if module.suffix == ".xz" else data)
    shutil.copy(plain, modules / "updates")
    subprocess.run(in_root(root, (), "depmod", target.release), check=True)
    command = in_root(root, (), "modinfo", "-k", target.release, "-F", "version", "rdma_rxe")
    patch_id = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    facts = {"kernel_release": target.release, "patch_id": patch_id.removeprefix("rocelab-")}
    (out / "build.json").write_text(json.dumps(facts))


def _make_image(target: Target, root: Path, out: Path) -> None:
    """Write an image like those of tools/node/build.py: the line's files, and another kernel."""
    own = (BUILD / "image" / target.line).resolve()
    out.mkdir(parents=True)
    for name in ("root", "packages.tsv"):
        (out / name).symlink_to(own / name)
    shutil.copy(root / "boot" / f"vmlinuz-{target.release}", out / "vmlinuz")
    _node_build().make_initramfs(root, target.release, out / "initramfs.cpio")
    _exchange_modules(own / "root.sqfs", root / MODULES, out / "root.sqfs")
    facts = json.loads((own / "image.json").read_text())
    facts |= {"kernel_release": target.release, "kernel_source": target.package}
    (out / "image.json").write_text(json.dumps(facts, indent=1) + "\n")


def _exchange_modules(image: Path, modules: Path, out: Path) -> None:
    """Copy an image with other modules. No user but root could unpack it with its owners."""
    unpack, pack = ["sqfs2tar", str(image)], ["tar2sqfs", "-q", "-c", "lz4", "-f", str(out)]
    with (
        subprocess.Popen(unpack, stdout=subprocess.PIPE) as source,
        subprocess.Popen(pack, stdin=subprocess.PIPE) as target,
    ):
        with (
            tarfile.open(fileobj=source.stdout, mode="r|") as old,
            tarfile.open(fileobj=target.stdin, mode="w|") as new,
        ):
            for member in old:
                if not PurePosixPath(member.name).is_relative_to(MODULES):
                    new.addfile(member, old.extractfile(member) if member.isreg() else None)
            new.add(modules, MODULES, filter=_of_root)
        assert target.stdin
        target.stdin.close()
    for process in (source, target):
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    return member


def _node_build() -> ModuleType:
    """Return tools/node/build.py, which is in no package, as a module."""
    spec = importlib.util.spec_from_file_location("node_build", TOP / "tools/node/build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
