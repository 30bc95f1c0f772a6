# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile hosts behind a real ssh: they flood, dawdle, lie and forge; commands say so, and end.

tests/lib/hostile_shell.py is what each host runs in place of what it is asked to.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import ssh_daemon
from hostile_shell import KINDS
from rocelab import limits

pytestmark = [pytest.mark.long]

SECONDS = 400
"""For a command that asks some twenty times, each for a minute at most."""
MEMORY = 2 * limits.MAX_PRINTED_BYTES + (150 << 20)
"""Bytes: both streams of a command, and what Python takes."""
CODES = {"doctor --hosts": {0, 3}, "hosts prepare": {2, 3, 4}, "hosts status": {0, 2, 3, 4},
         "hosts restore": {0, 2, 3, 4}, "run PLAN": {2, 3, 4, 5}}  # fmt: skip
PLAN = """
[plan]
name = "tcp"
repetitions = 1
transports = ["tcp"]
probes = []
[testbed]
provider = "ssh"
[[benchmark]]
tool = "qperf"
test = "tcp_lat"
sizes = [64]
"""
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


@dataclass(frozen=True)
class Answer:
    """How a command ended."""

    code: int
    printed: str
    memory: int
    seconds: float


@pytest.fixture(scope="module")
def inventories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """An inventory for each kind of host; it has the host twice, for what needs two."""
    folder = tmp_path_factory.mktemp("ssh")
    with ssh_daemon.running(folder, list(KINDS)) as inventory:
        paths = {}
        for part in inventory.read_text().split("[[host]]\n")[1:]:
            kind = part.split('"')[1]
            paths[kind] = folder / f"{kind}.toml"
            again = part.replace(f'"{kind}"', f'"{kind}-2"', 1)
            paths[kind].write_text(f"[[host]]\n{part}[[host]]\n{again}")
        yield paths


def asked(command: str, inventory: Path, folder: Path) -> Answer:
    """Run a command on the hosts of an inventory."""
    (folder / "plan.toml").write_text(PLAN)
    words = [word.replace("PLAN", "plan.toml") for word in command.split()]
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "rocelab", *words, "--inventory", str(inventory)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Answer(
        process.returncode, printed.decode(), used.ru_maxrss << 10, time.monotonic() - began
    )


@pytest.mark.parametrize("command", CODES)
def test_hostile_hosts(command: str, inventories: dict[str, Path], tmp_path: Path) -> None:
    def case(kind: str) -> list[str]:
        folder = tmp_path / kind
        folder.mkdir()
        outcome = asked(command, inventories[kind], folder)
        faults = [word for word in ("Traceback", "internal error") if word in outcome.printed]
        if outcome.code not in CODES[command]:
            faults.append(f"exit code {outcome.code}")
        if outcome.seconds > SECONDS:
            faults.append(f"{outcome.seconds:.0f} s")
        if outcome.memory > MEMORY:
            faults.append(f"{outcome.memory >> 20} MiB")
        if RAW.search(outcome.printed):
            faults.append("control characters")
        if len(outcome.printed) > 20_000:
            faults.append(f"{len(outcome.printed)} characters")
        # a host's lines are within ours
        forged = [line for line in outcome.printed.splitlines() if "all is well" in line]
        faults += [f"forged: {line}" for line in forged if line.startswith(("rocelab:", "ok"))]
        if (
            command == "doctor --hosts"
            and "well" in outcome.printed
            and "\nok    everything" in outcome.printed
        ):
            faults.append("forged an ok")
        return [f"{kind}: {fault}: {outcome.printed[-600:]}" for fault in faults]

    with ThreadPoolExecutor(4) as pool:
        assert [fault for faults in pool.map(case, KINDS) for fault in faults] == []
