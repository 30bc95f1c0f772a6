# SPDX-License-Identifier: GPL-2.0-or-later
"""The packets of a network interface, as dumpcap or tcpdump writes them into a pipe."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from rocelab.directory import temporary_place
from rocelab.errors import MissingError, UsageError

_PROGRAMS = (
    # users of the group wireshark may run it
    ("dumpcap", "-q", "-w", "-", "-i"),
    ("tcpdump", "-n", "-U", "-w", "-", "-i"),
)
"""Programs that write each packet at once, the preferred one first."""
_STOP_S = 10
"""How long a program may take to end after a signal."""
_TEXT_BYTES = 4096


@dataclass
class Source:
    """A capture in progress."""

    path: str
    """Opens like a file, and ends when the capture does."""
    _process: subprocess.Popen[bytes]
    _said: IO[bytes]
    is_stopped: bool = False

    def stop(self) -> None:
        """End the capture; what the program still holds can be read before the end of the file."""
        self.is_stopped = True
        self._process.send_signal(signal.SIGINT)

    def failure(self) -> str | None:
        """Why the program ended by itself, after its end; None if it did not fail."""
        self._process.wait(_STOP_S)
        if self._process.returncode in {0, -signal.SIGINT}:
            return None
        self._said.seek(0)
        text = self._said.read(_TEXT_BYTES).decode(errors="replace").strip()
        return text or f"the program ended with status {self._process.returncode}"


def _check_interface(interface: str) -> None:
    # dumpcap takes other names for pipes and for hosts elsewhere
    names = [name for _, name in socket.if_nameindex()]
    if interface not in {*names, "any"}:
        raise UsageError(
            f"there is no network interface {interface!r}",
            cause="it is gone, or its name is another one",
            action=f"Choose from any, {', '.join(names)}.",
        )


@contextmanager
def packets(interface: str) -> Iterator[Source]:
    """Capture from a network interface (or `any`) until the context ends.

    Raises UsageError if there is no such interface, MissingError without a program that captures.
    """
    _check_interface(interface)
    command = next((one for one in _PROGRAMS if shutil.which(one[0])), None)
    if command is None:
        raise MissingError(
            f"cannot capture from {interface}",
            cause="neither dumpcap nor tcpdump is installed",
            action="Install one of them: `apt-get install wireshark-common`.",
        )
    with (
        tempfile.TemporaryFile(dir=temporary_place()) as errors,
        subprocess.Popen(
            [*command, interface],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C is for us: we end the program, and read what it still holds
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield Source(f"/dev/fd/{process.stdout.fileno()}", process, errors)
        finally:
            process.stdout.close()
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
