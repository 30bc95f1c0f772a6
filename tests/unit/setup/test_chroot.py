# SPDX-License-Identifier: GPL-2.0-or-later
"""make enters the nodes' image also from a chroot whose / is no mount point."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from requirements import missing, need_program

PROGRAMS = Path(__file__).resolve().parents[3] / "tools/setup"
_IN_CHROOT = """
    set -e
    mount --rbind /usr usr && mount -t proc proc proc && mount --rbind /dev dev
    exec chroot . "$@"
"""


@pytest.fixture
def chroot(tmp_path: Path) -> list[str]:
    """Words that run a command in a folder that has this machine's programs."""
    need_program("bwrap")
    if os.geteuid():
        missing("only root may chroot")
    root = tmp_path / "root"
    for name in ("usr", "proc", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    for name in ("bwrap-anywhere", "can-enter"):
        shutil.copy(PROGRAMS / name, root)
    return ["unshare", "--mount", "--wd", str(root), "sh", "-c", _IN_CHROOT, "sh"]


def run(chroot: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*chroot, *words], capture_output=True, text=True, check=False)


def test_bwrap_alone_fails(chroot: list[str]) -> None:
    """If it ever works, the program can go."""
    assert "slave" in run(chroot, "bwrap", "--ro-bind", "/", "/", "true").stderr


def test_a_command_runs_and_gives_its_status(chroot: list[str], tmp_path: Path) -> None:
    inside = ("/bwrap-anywhere", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "sh", "-c")
    done = run(chroot, *inside, "echo it runs; exit 7")
    assert (done.stdout, done.returncode) == ("it runs\n", 7), done.stderr
    assert not list((tmp_path / "root/tmp").iterdir())


def test_who_cannot_build_the_image_hears_of_it_first(chroot: list[str]) -> None:
    """The kernel gives a plain user in a chroot no user namespace; root needs none."""
    assert run(chroot, "/can-enter").returncode == 0
    plain = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/can-enter")
    done = run(chroot, *plain)
    assert done.returncode == 3
    assert "this is a chroot" in done.stderr
    assert "run make as root" in done.stderr
