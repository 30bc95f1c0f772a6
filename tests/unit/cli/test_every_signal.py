# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command, ended by each signal at five moments of ten (tests/lib/signal_sweep.py).

`make test-long` has each signal at all ten.

Ended, or as if there had been no signal: no part of a file, no exit code that lies, no traceback,
no process that goes on. Commands that need machines are here as far as they come without them;
tests/vm/test_kills.py ends them while they measure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import signal_sweep
from command_tree import commands
from corpus import CAPTURES
from rocelab.directory import temporary_folder
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
WHERE = {
    "CAPTURE": "capture.pcap",
    "TRACE": str(CAPTURES / "testbed-rxedump-write-lat-64.pcapng"),
    "LINK": str(CAPTURES / "testbed-write-lat-64.pcap"),
    "HOSTS": "--inventory hosts.toml",
}
COMMANDS = {
    "analyze": (
        "analyze CAPTURE",
        "analyze --json CAPTURE CAPTURE",
        "analyze CAPTURE --html page.html",
        "analyze CAPTURE --parquet tables",
    ),
    "annotate": ("annotate CAPTURE -o new.pcapng",),
    "join": ("join LINK --trace TRACE --parquet tables",),
    "export": ("export LINK --trace TRACE --perfetto new.json",),
    "up": ("up",),
    "down": ("down --all",),
    "ssh": ("ssh n1 true",),
    "exec": ("exec --no-folder -- true",),
    "status": ("status --json",),
    "hosts slurm": ("hosts slurm",),
    "hosts prepare": ("hosts prepare HOSTS",),
    "hosts restore": ("hosts restore HOSTS",),
    "hosts status": ("hosts status HOSTS",),
    "run": ("run demo --dry-run", "run --resume run"),
    "ab": ("ab instrumented events",),
    "lines": ("lines",),
    "study list": ("study list",),
    "study show": ("study show gaiser2010",),
    "study run": ("study run gaiser2010 --quick",),
    "study report": ("study report run",),
    "show": ("show run",),
    "report": ("report run", "report run --export tables", "report run --share shared"),
    "compare": ("compare run other",),
    "doctor": ("doctor --json", "doctor --hosts HOSTS"),
    "wireshark install": ("wireshark install",),
    "wireshark uninstall": ("wireshark uninstall",),
    "clean": ("clean",),
}
WAITING = {"hosts prepare", "hosts restore", "hosts status", "doctor --hosts"}
"""Their hosts never answer."""
TOOLS = ("sh", "timeout", "ssh-keygen", "env", "true", "sleep", "rm", "git", "make")


TSHARK = """
printf '%s:\\t%s\\n' 'Personal configuration' "$HOME/config" \\
    'Personal Lua Plugins' "$HOME/plugins" 'Personal Extcap path' "$HOME/extcap"
"""


def _world(folder: Path) -> Path:
    """What each attempt begins with."""
    (folder / "tmp").mkdir(parents=True, mode=0o700)
    (folder / "home").mkdir(mode=0o700)
    run = Synthetic(
        transports=("tcp",), tests=("write_lat",), sizes=(64,), repetitions=1, traced=False
    )
    run.write(folder / "run")
    run.write(folder / "other")
    body = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
    (folder / "capture.pcap").write_bytes(body[:24] + body[24:] * 400)
    (folder / "hosts.toml").write_text('[[host]]\nname = "a"\nhost = "a"\nnetdev = "lo"\n')
    return folder


def _programs(folder: Path) -> Path:
    """What is in PATH: an ssh that never answers, a tshark that starts fast, and no QEMU."""
    folder.mkdir()
    for name in TOOLS:
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    scripts = {"ssh": "exec sleep 100", "tshark": TSHARK}
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def _words(line: str) -> list[str]:
    return " ".join(WHERE.get(word, word) for word in line.split()).split()


def test_all_commands_are_here() -> None:
    assert set(COMMANDS) == {command.name for command in commands()}


@pytest.mark.parametrize("once", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_signal(tmp_path: Path, once: bool) -> None:
    """At moments that differ from run to run: only the long test counts a fault that is rare."""
    folder = _world(tmp_path / "world")
    path = _programs(tmp_path / "bin")
    cases: list[dict[str, Any]] = [
        {
            "name": line,
            "words": _words(line),
            "folder": str(folder),
            "path": str(path),
            "waits": 0.6 if any(line.startswith(each) for each in WAITING) else 0.0,
            "once": once,
            "every": once,
        }
        for lines in COMMANDS.values()
        for line in lines
    ]
    only = os.environ.get("ROCELAB_TEST_SIGNALS")
    cases = [case for case in cases if not only or case["name"].startswith(only)]

    def part(number: int, some: list[dict[str, Any]]) -> list[dict[str, Any]]:
        within = Path(short) / f"part{number}"
        within.mkdir()
        given = {"cases": some, "within": str(within)}
        (within / "cases.json").write_text(json.dumps(given))
        paths = os.pathsep.join([str(ROOT / "tests/lib"), *sys.path])
        done = subprocess.run(
            [sys.executable, signal_sweep.__file__, str(within / "cases.json")],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": paths},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return [json.loads(line) for line in done.stdout.splitlines()]

    working = [case for case in cases if not case["waits"]]
    # those that wait need no processor meanwhile
    parts = [working[::2], working[1::2], [case for case in cases if case["waits"]]]
    # sockets are in it
    with temporary_folder() as short, ThreadPoolExecutor(len(parts)) as pool:
        answers = [each for some in pool.map(part, range(len(parts)), parts) for each in some]
    print("\n".join(f"{each['seconds']:5} s  {each['case']}" for each in answers))
    assert len(answers) == len(cases)
    faults = [fault for each in answers for fault in each["faults"]]
    assert not faults, "\n".join(faults)
