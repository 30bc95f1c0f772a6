# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rxedump, here or behind SSH, straight into Wireshark's pipe, and leave nothing behind.

rxedump writes into the pipe itself (or ssh does): nothing is copied here. On its machine a shell
watches standard input, and ends rxedump when that ends. So whatever becomes of this program, of
ssh or of the connection, rxedump ends, and with it its BPF programs: nothing of them is pinned.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rocelab.conditions import system_error
from rocelab.errors import ExitCode, MissingError, TestbedError
from rocelab.wireshark.extcap.interfaces import Interface

_STOP_S = 15
"""For rxedump to end once nobody reads; then the connection is cut, which ends it, too.

While Wireshark reads there is no limit: rxedump's last blocks may be megabytes on a slow link.
Wireshark closes the pipe when it has waited long enough, and ssh notices a dead connection.
"""
_TEXT_BYTES = 1 << 16

# rxedump needs root; sudo must not ask. The shell runs as root with it: only so can it end it.
_AS_ROOT = 'if [ "$(id -u)" = 0 ]; then exec sh -c "$@"; else exec sudo -n sh -c "$@"; fi'
# A shell's background commands have no standard input of their own, and ignore SIGINT.
_WATCH = (
    'command -v "$1" >/dev/null || { echo "$1 is not installed" >&2; exit 127; }; '
    'exec 3<&0; "$@" 3<&- & dump=$!; '
    "{ cat <&3; kill $dump; } >/dev/null 2>&1 & watch=$!; "
    "wait $dump; status=$?; kill $watch 2>/dev/null; exit $status"
)


class _Stopped(BaseException):
    """Wireshark wants the end before it has opened the pipe."""


def _raise(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise _Stopped


def _ignore(signum: int, frame: FrameType | None) -> None:
    # the wake-up descriptor tells of it
    del signum, frame


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def command(interface: Interface, argv: Sequence[str]) -> list[str]:
    """The local command line."""
    whole = ["sh", "-c", _AS_ROOT, "sh", _WATCH, "rocelab", *argv]
    return whole if interface.ssh is None else [*interface.ssh, shlex.join(whole)]


def capture(interface: Interface, argv: Sequence[str], fifo: Path) -> int:
    """Stream until Wireshark stops or rxedump ends; gives the exit status.

    Raises RocelabError with what to show when it did not end well.
    """
    for number in _SIGNALS:
        signal.signal(number, _raise)
    try:
        # waits for Wireshark to open its side
        pipe = os.open(fifo, os.O_WRONLY | os.O_CLOEXEC)
    except _Stopped:
        return ExitCode.OK
    except OSError as error:
        raise system_error(
            error,
            f"cannot write to Wireshark's pipe {fifo}",
            action="Start the capture again: Wireshark makes a new pipe.",
        ) from error
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, _ignore)
    with subprocess.Popen(
        command(interface, argv),
        stdin=subprocess.PIPE,
        stdout=pipe,
        stderr=subprocess.PIPE,
        # a signal to Wireshark's process group is for us, who end it in order
        start_new_session=True,
    ) as process:
        stopped, text = _watch(process, pipe, woken)
    os.close(pipe)
    if process.returncode == 0 or stopped:
        return ExitCode.OK
    raise _failure(interface, process.returncode, text)


def _watch(process: subprocess.Popen[bytes], pipe: int, woken: int) -> tuple[bool, str]:
    """Wait for the end, and see to it; whether it was wanted, and the last of what it said."""
    assert process.stdin
    assert process.stderr
    ended = os.pidfd_open(process.pid)
    poll = select.poll()
    errors = process.stderr.fileno()
    for descriptor in (ended, woken, errors):
        poll.register(descriptor, select.POLLIN)
    # registered for nothing: poll reports POLLERR anyway, when nobody reads the pipe any more
    poll.register(pipe, 0)
    stopped = False
    deadline: float | None = None
    text = b""
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        ready = dict(poll.poll(left))
        if errors in ready:
            piece = os.read(errors, _TEXT_BYTES)
            text = (text + piece)[-_TEXT_BYTES:]
            if not piece:
                poll.unregister(errors)
        if ended in ready and errors not in ready:
            break
        for descriptor in (woken, pipe):
            if descriptor in ready:
                stopped = True
                process.stdin.close()
                poll.unregister(descriptor)
        if pipe in ready:
            deadline = time.monotonic() + _STOP_S
        if deadline is not None and time.monotonic() >= deadline:
            process.kill()
            deadline = None
    os.close(ended)
    return stopped, text.decode(errors="replace")


def _failure(interface: Interface, status: int, text: str) -> TestbedError | MissingError:
    lines = [line for line in text.splitlines() if "rxedump: ready" not in line]
    cause = "\n".join(lines[-8:]).strip()
    where = interface.title
    if interface.ssh and status == 255:
        return TestbedError(
            f"{where} does not answer",
            cause=cause or "the connection broke",
            action="Try ssh to that host by hand; it must need no password.",
        )
    if status == 127:
        return MissingError(
            f"{where}: {cause}",
            action="Install the probes there: `make -C ebpf install` (ebpf/README.md).",
        )
    if "sudo:" in cause:
        return MissingError(
            f"{where}: rxedump needs root",
            cause=cause,
            action="Let sudo run it without a password, or name root as user in the inventory.",
        )
    return TestbedError(f"{where}: rxedump ended with status {status}", cause=cause)
