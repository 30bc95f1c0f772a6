#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Use rxetop as a person does, on a pseudo-terminal; print what happened as JSON.

Usage: rxetop_pty.py END (`q`, or a signal's name). It waits for the first frame at 80 columns and
ends rxetop; before `q` it presses other keys, and makes the terminal wider. The test judges.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

END = sys.argv[1]
SECONDS = 60


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def frame_with(fd, wanted):
    """The end of what is drawn, from `wanted` to the end of its frame."""
    text, deadline = b"", time.monotonic() + SECONDS
    while b"\x1b[J" not in text.partition(wanted)[2]:
        if time.monotonic() > deadline or not select.select([fd], [], [], SECONDS)[0]:
            raise SystemExit(f"no {wanted!r} in {text[-2000:]!r}")
        text += os.read(fd, 65536)
    before, _, after = text.partition(wanted)
    return (before.rpartition(b"\x1b[H")[2] + wanted + after.partition(b"\x1b[J")[0]).decode()


def tour():
    """Press keys; what each frame says."""
    frames = {}
    os.write(leader, b"v")
    frames["peer"] = frame_with(leader, b"view peer")
    os.write(leader, b"fno such command\n")
    frames["filtered"] = frame_with(leader, b"filter 'no such command'")
    os.write(leader, b"f" + b"\x7f" * 20 + b"\n")
    os.write(leader, b"p")
    frames["paused"] = frame_with(leader, b"PAUSED")
    resize(leader, 40, 200)
    os.kill(pid, signal.SIGWINCH)
    frames["wide"] = frame_with(leader, b"STG50")
    os.write(leader, b"g")
    frames["grouped"] = frame_with(leader, b"a row for each command")
    return frames


leader, follower = pty.openpty()
before = termios.tcgetattr(follower)
resize(follower, 24, 80)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(follower, fd)
    os.execvp("rxetop", ["rxetop", "--idle", "--interval", "300"])

report = {"first": frame_with(leader, b"P99.9")}
report["raw"] = not termios.tcgetattr(follower)[3] & (termios.ICANON | termios.ECHO)
if END == "q":
    report |= tour()
if END == "q":
    os.write(leader, b"q")
else:
    os.kill(pid, getattr(signal, END))
deadline = time.monotonic() + SECONDS
last = b""
while True:
    if select.select([leader], [], [], 0.1)[0]:
        last += os.read(leader, 65536)
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        break
    if time.monotonic() > deadline:
        raise SystemExit("rxetop does not end")
while select.select([leader], [], [], 0)[0]:
    last += os.read(leader, 65536)
report["last"] = last.decode()
report["exit"] = os.waitstatus_to_exitcode(status)
report["restored"] = termios.tcgetattr(follower) == before
json.dump(report, sys.stdout)
