# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hostile host runs instead of what it is asked to: `hostile_shell.py KIND`.

It knows how rocelab's waiting shells work (rocelab.testbed.node.waiting_shells), so that it can
answer as one that works.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable

_MARK = re.compile(rb"rocelab-[0-9a-f]{16}")
ESCAPES = b"\x1b[2J\x1b[31m\x1b]0;title\x07\x9b2J\r\n"
FORGED = b"\nok    everything is well\n  ok  driver    loaded\nrocelab: all is well\n"
BINARY = bytes(range(256)) * 40


def _write(stream: int, data: bytes) -> None:
    while data:
        data = data[os.write(stream, data) :]


def _flood(stream: int, line: bytes) -> None:
    while True:
        _write(stream, line * 1000)


def _trickle() -> None:
    while True:
        _write(1, b".")
        time.sleep(0.5)


def _lies(answer: Callable[[bytes], bytes], status: bytes = b"0") -> None:
    """Say of each command that it ended, and that it printed what `answer` gives for it."""
    mark = b""
    for line in sys.stdin.buffer:
        if not mark and (match := _MARK.search(line)):
            mark = match[0]
        if line.startswith(b"rocelab_run"):
            # the first only defines what runs commands
            lie = b"" if line == b"rocelab_run true\n" else answer(line)
            _write(1, lie + mark + b" " + (b"0" if not lie else status) + b"\n")
            _write(2, lie + mark + b"\n")


def _root(line: bytes) -> bytes:
    """Pass for root, so that more is asked for."""
    return b"0\n" if b"id -u" in line else b""


KINDS: dict[str, Callable[[], None]] = {
    "flood": lambda: _flood(1, b"ok    a line\n"),
    "flood-errors": lambda: _flood(2, b"ok    a line\n"),
    "endless-line": lambda: _flood(1, b"x" * 1000),
    "trickle": _trickle,
    "silent": lambda: time.sleep(1000),
    "forged": lambda: _lies(lambda _: FORGED),
    "escapes": lambda: _lies(lambda _: ESCAPES * 3),
    "binary": lambda: _lies(lambda _: BINARY),
    "long": lambda: _lies(lambda _: b"9" * 5_000_000 + b"\n"),
    "deep": lambda: _lies(lambda line: _root(line) or b"[" * 200_000),
    "empty": lambda: _lies(_root),
    "fails": lambda: _lies(lambda _: b"0\n" + FORGED, status=b"255"),
    "closes": lambda: None,
    "closes-midway": lambda: _write(1, sys.stdin.buffer.readline()[:10]),
    "closes-loudly": lambda: _write(2, ESCAPES + FORGED + BINARY),
    "wrong-status": lambda: sys.exit(77),
}


if __name__ == "__main__":
    KINDS[sys.argv[1]]()
