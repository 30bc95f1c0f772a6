# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that take long say what they do before they begin, not after their imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_FIRST = """
import sys
from rocelab.cli import main
from rocelab.terminal import console
say = console.say
def first(text):
    console.say = say
    print("IMPORTED", *sys.modules, file=sys.stderr)
    say(text)
    raise SystemExit(0)
console.say = first
sys.argv[0] = "rocelab"
main()
"""
_SLOW = {"polars", "altair", "rocelab._core", "rocelab.measure.runner"}


@pytest.mark.parametrize(
    "words",
    [
        ["up", "--name", "never"],
        ["run", "demo"],
        ["show", "RUN"],
        ["report", "RUN"],
        ["compare", "A", "B"],
        ["ab", "instrumented", "events"],
        ["doctor"],
        ["join", "WHERE"],
        ["annotate", "IN.pcap", "-o", "OUT.pcapng"],
        ["export", "WHERE", "--perfetto", "OUT.json"],
        ["study", "run", "gaiser2010", "--quick"],
        ["study", "report", "RUN"],
        ["hosts", "prepare"],
        ["hosts", "status"],
        ["hosts", "restore"],
    ],
    ids=" ".join,
)
def test_something_is_said_first(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST, *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [imported] = [line for line in done.stderr.splitlines() if line.startswith("IMPORTED")]
    assert not _SLOW & set(imported.split())
    assert " s] " in done.stderr
