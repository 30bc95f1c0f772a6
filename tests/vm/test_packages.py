# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes with more packages, and the tools of plans that are in such packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocelab.record import read
from vmlab import LINE

pytestmark = pytest.mark.long  # each boots machines from an image that it makes


def rocelab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rocelab", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


def a_package(folder: Path, name: str) -> Path:
    """Make a package with a program that prints its name; its install script leaves a file."""
    root = folder / name
    (root / "DEBIAN").mkdir(parents=True)
    (root / "usr/bin").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a test\nDescription: a test\n"
    )
    (root / "DEBIAN/postinst").write_text("#!/bin/sh\ntouch /usr/share/was-configured\n")
    (root / f"usr/bin/{name}").write_text(f"#!/bin/sh\necho {name}\n")
    for script in ("DEBIAN/postinst", f"usr/bin/{name}"):
        (root / script).chmod(0o755)
    deb = folder / "debs" / f"{name}.deb"
    deb.parent.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, deb], check=True)
    return deb


def test_packages_of_mirrors_and_files(tmp_path: Path) -> None:
    """Installed with what they depend on, and configured, next to what every node has."""
    a_package(tmp_path, "mine-one")
    debs = a_package(tmp_path, "mine-two").parent
    words = ("exec", "--name", f"none-{os.getpid()}", "--line", LINE, "--no-folder")
    packages = ("--package", f"{debs}/", "--package", "ucx-utils")
    script = "mine-one && mine-two && ls /usr/share/was-configured && ucx_info -v && rping -h; "
    script += "ibv_devinfo -l && test ! -e /usr/src/wanted"
    done = rocelab(*words, *packages, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    printed = ["mine-one", "mine-two", "/usr/share/was-configured"]
    assert done.stdout.splitlines()[: len(printed)] == printed
    assert "ersion" in done.stdout.splitlines()[len(printed)]  # "Version 1.13", "Library version"
    assert "rxe0" in done.stdout
    refused = rocelab(*words, "--package", "no-such-package", "--", "true")
    assert refused.returncode == 2
    assert "no package no-such-package in" in refused.stderr


_PLAN = """
[plan]
name = "tools"
repetitions = 1
transports = ["rxe-v1", "rxe-v2"]
timing_pass = false
[testbed]
line = "LINE"
[[benchmark]]
tool = "ucx_perftest"
test = "tag_lat"
sizes = [64]
iterations = 50
transports = ["tcp", "rxe-v1", "rxe-v2"]
[[benchmark]]
tool = "ucx_perftest"
test = "tag_bw"
sizes = [4096]
iterations = 100
transports = ["rxe-v2"]
[[benchmark]]
tool = "rping"
test = "time"
sizes = [64]
iterations = 10
[[benchmark]]
tool = "udaddy"
test = "time"
sizes = [64]
iterations = 10
transports = ["rxe-v2"]
[[benchmark]]
tool = "rstream"
test = "latency"
sizes = [64]
iterations = 50
transports = ["tcp", "rxe-v1", "rxe-v2"]
[[benchmark]]
tool = "rstream"
test = "bandwidth"
sizes = [1024]
iterations = 500
transports = ["rxe-v2"]
[[benchmark]]
tool = "fi_pingpong"
test = "latency"
sizes = [64]
iterations = 50
transports = ["tcp", "rxe-v1", "rxe-v2"]
"""


def test_tools_in_a_plan(tmp_path: Path) -> None:
    """Each is proven to have used its transport, and has its value."""
    plan = tmp_path / "tools.toml"
    plan.write_text(_PLAN.replace("LINE", LINE))
    done = rocelab("run", "--name", f"p-{os.getpid()}", "--out", str(tmp_path / "runs"), str(plan))
    assert done.returncode == 0, done.stderr
    [run] = (tmp_path / "runs").iterdir()
    table = read.results(run)
    for tool, metric, over in (
        ("ucx_perftest", "latency.mean", ["rxe-v1", "rxe-v2", "tcp"]),
        ("ucx_perftest", "bandwidth", ["rxe-v2"]),
        ("rping", "application.time", ["rxe-v1", "rxe-v2"]),
        ("udaddy", "application.time", ["rxe-v2"]),
        ("rstream", "latency.mean", ["rxe-v1", "rxe-v2", "tcp"]),
        ("rstream", "bandwidth", ["rxe-v2"]),
        ("fi_pingpong", "latency.mean", ["rxe-v1", "rxe-v2", "tcp"]),
    ):
        rows = table.filter(tool=tool, metric=metric)
        assert sorted(rows["transport"]) == over
        assert min(rows["value"]) > 0
