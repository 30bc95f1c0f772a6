# SPDX-License-Identifier: GPL-2.0-or-later
"""Time limits that stand still while this process is stopped, as the whole machine may be."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from typing import BinaryIO

_SLICE = 1.0
"""Seconds that are waited at once; so much of a stop counts at most."""


def slices(seconds: float) -> Iterator[float]:
    """Yield how long to wait next, until that many seconds have passed awake."""
    left = seconds
    while left > 0:
        length = min(left, _SLICE)
        began = time.monotonic()
        yield length
        left -= min(time.monotonic() - began, length + _SLICE)


def wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Return a process's exit status. Raises subprocess.TimeoutExpired."""
    for length in slices(seconds):
        try:
            return process.wait(length)
        except subprocess.TimeoutExpired:
            continue
    raise subprocess.TimeoutExpired(process.args, seconds)


def run(argv: list[str], *, stdin: bytes, seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a new session, otherwise as subprocess.run does.

    Raises subprocess.TimeoutExpired; then, or on any other error, the command has been killed.
    """
    # a file, because Popen.communicate forgets what it has not written when its time is over
    with (
        os.fdopen(os.memfd_create("stdin"), "w+b") as source,
        subprocess.Popen(
            argv,
            stdin=_filled(source, stdin),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process,
    ):
        try:
            for length in slices(seconds):
                try:
                    out, err = process.communicate(timeout=length)
                except subprocess.TimeoutExpired:
                    continue
                return subprocess.CompletedProcess(argv, process.returncode, out, err)
        except BaseException:
            process.kill()
            raise
        process.kill()
    raise subprocess.TimeoutExpired(argv, seconds)


def _filled(source: BinaryIO, data: bytes) -> BinaryIO:
    source.write(data)
    source.seek(0)
    return source
