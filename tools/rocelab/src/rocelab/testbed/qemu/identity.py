# SPDX-License-Identifier: GPL-2.0-or-later
"""Who a virtual machine is: what must differ between two machines that were restored from one file.

The machine waits for it at its second serial port (tools/node/files/usr/lib/rocelab/serve), after
it has booted and after it has been restored. None of it is in an image or a snapshot, on a command
line or in a log.
"""

from __future__ import annotations

import base64
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from rocelab.errors import TestbedError

LOGIN_KEY, HOST_KEY = "id_ed25519", "host_key"
_RANDOM_BYTES = 64
_QUEUE_PAIRS = (47, 128)
"""How many numbers of queue pairs are skipped at least, and by how many more that may differ: the
driver's table of queue pairs then has two levels on every machine, so that finding one costs the
same everywhere."""
_WAITING, _IDENTIFIED = b"waiting", b"identified"
_MAX_SAID = 4096
"""Bytes from the machine, which is not trusted, that are looked through for a word."""
_TELL_SECONDS = 60


def make_keys(folder: Path) -> None:
    """Generate a login key and a host key; they are deleted with the testbed."""
    make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rocelab", "-f"]
    for name in (LOGIN_KEY, HOST_KEY):
        (folder / name).unlink(missing_ok=True)
        subprocess.run([*make_key, folder / name], check=True, stdin=subprocess.DEVNULL)
    host_key = (folder / f"{HOST_KEY}.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"[127.0.0.1]:* {' '.join(host_key)}\n")


def identity(folder: Path, name: str, hosts: Mapping[str, str]) -> bytes:
    """Return the lines that tell a machine who it is.

    `folder` has the testbed's keys, `hosts` the addresses of its nodes by name. Each call has other
    random bytes, and the time of the call.
    """

    def lines() -> Iterator[str]:
        yield f"random {secrets.token_hex(_RANDOM_BYTES)}"
        yield f"time {time.time():.3f}"
        yield f"machine-id {secrets.token_hex(16)}"
        yield f"queue-pairs {_QUEUE_PAIRS[0] + secrets.randbelow(_QUEUE_PAIRS[1])}"
        yield f"hostname {name}"
        yield from (f"host {address} {host}" for host, address in hosts.items())
        yield f"authorized-key {(folder / f'{LOGIN_KEY}.pub').read_text().strip()}"
        yield f"host-key {base64.b64encode((folder / HOST_KEY).read_bytes()).decode()}"
        yield "go"

    return "".join(f"{line}\n" for line in lines()).encode()


class Channel:
    """The second serial port of one machine."""

    def __init__(self, path: Path) -> None:
        """Connect. Raises TestbedError when QEMU has ended."""
        self._said = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise TestbedError(
                f"cannot connect to the serial port {path.name}", cause=str(error)
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def waits(self, seconds: float) -> bool:
        """Whether the machine says within that time that it waits for its identity."""
        return self._says(_WAITING, seconds)

    def _says(self, word: bytes, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while word not in self._said:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                read = self._socket.recv(_MAX_SAID)
            except TimeoutError:
                return False
            if not read:
                return False
            self._said = (self._said + read)[-_MAX_SAID:]
        self._said = b""
        return True

    def tell(self, lines: bytes, *, patience: float) -> None:
        """Send the machine its identity. Raises TestbedError unless it takes it."""
        try:
            self._socket.sendall(lines)
            # until then QEMU keeps what the machine has not read only while we are connected
            taken = self._says(_IDENTIFIED, _TELL_SECONDS * patience)
        except OSError as error:
            raise TestbedError("a machine did not take its identity", cause=str(error)) from error
        if not taken:
            raise TestbedError(
                f"a machine did not take its identity within {_TELL_SECONDS * patience:.0f} s",
                cause="it hangs, or this machine is too busy",
            )
