# SPDX-License-Identifier: GPL-2.0-or-later
"""The extcap as Wireshark runs it: a pipe, a process, signals. Also finds what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from polling import wait_until
from rocelab.testbed.node import Node

EXTCAP = Path(__file__).resolve().parents[2] / "tools/wireshark/extcap/rocelab"
PACKET = 6


def ask(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [sys.executable, str(EXTCAP), *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


class Live:
    """A running capture, whose stream goes to a file."""

    extcap = EXTCAP
    """The program."""

    def __init__(self, folder: Path, interface: str, *words: str, **environment: str) -> None:
        self.path = folder / "live.pcapng"
        self.path.unlink(missing_ok=True)
        self.fifo = folder / "live.fifo"
        self.fifo.unlink(missing_ok=True)
        os.mkfifo(self.fifo)
        argv = ["--capture", "--extcap-interface", interface, "--fifo", str(self.fifo), *words]
        self.process = subprocess.Popen(
            [sys.executable, str(self.extcap), *argv],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        # like Wireshark, which opens its end first
        self._pipe = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(self._pipe, True)
        self._stop = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        import select

        with self.path.open("wb", buffering=0) as file:
            poll = select.poll()
            poll.register(self._pipe, select.POLLIN)
            written = False
            while not self._stop.is_set():
                if not poll.poll(100):
                    # a pipe that nobody has opened for writing has no end
                    if not written and self.process.poll() is not None:
                        break
                    continue
                piece = os.read(self._pipe, 1 << 16)
                file.write(piece)
                written = written or bool(piece)
                # before a writer has come, there is an end as well
                if not piece and (written or self.process.poll() is not None):
                    break
                if not piece:
                    time.sleep(0.01)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    def wait_ready(self) -> None:
        """Wait until rxedump has started its file."""
        wait_until("the first bytes", lambda: self.size or self.process.poll() is not None)

    def close(self) -> None:
        """Close the reading end, as when Wireshark is killed."""
        self._stop.set()
        self._reader.join()
        os.close(self._pipe)

    def end(self, number: int | None = signal.SIGTERM) -> tuple[int, str]:
        """Stop it as Wireshark does; return its status and output."""
        if number is not None:
            self.process.send_signal(number)
        _, output = self.process.communicate(timeout=600)
        self._reader.join(timeout=300)
        assert not self._reader.is_alive(), "the stream does not end"
        return self.process.returncode, output


def count(path: Path, since_ns: int = 0) -> int:
    """Packet blocks in a stream of rxedump that may end anywhere, those stamped later than that."""
    if not path.exists():
        return 0
    data, at, packets = path.read_bytes(), 0, 0
    while at + 12 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if at + size > len(data):
            break
        if int.from_bytes(data[at : at + 4], "little") == PACKET:
            high, low = (int.from_bytes(data[at + k : at + k + 4], "little") for k in (12, 16))
            packets += (high << 32 | low) > since_ns
        at += size
    return packets


def here(word: str) -> list[str]:
    """Processes of this machine that were started to capture from `word`."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if word in line and "rxedump" in line and "--write" in line:
            lines.append(line)
    return lines


_LEFT = (
    "pgrep -a rxedump; pgrep -fa '^(sh -c )?.*[c]at <&3'; "
    "ls -l /proc/[0-9]*/fd 2>/dev/null | grep -o 'bpf-prog\\|bpf_link' ; true"
)


def there(node: Node) -> str:
    """List what a capture runs on a node: rxedump, its shell, BPF programs."""
    return node.run(["sh", "-c", _LEFT]).stdout
