# SPDX-License-Identifier: GPL-2.0-or-later
"""Carry frames from QEMU through a faulty link and back, over Unix sockets, in a thread.

QEMU precedes each frame by its length in 4 bytes, big-endian (net/socket.c).
"""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.plans.fault import TO_CLIENT, TO_SERVER, Action, FaultPlan
from rocelab.testbed.faults.link import Due, FaultyLink

DIRECTIONS = (TO_SERVER, TO_CLIENT)
_LENGTH = 4
_ACTED = b"a"
"""Through the pipe that otherwise ends the thread."""
_LONGEST_FRAME = 1 << 17
_READ = 1 << 16
_IDLE_SECONDS = 0.2
_JOIN_SECONDS = 10
Signal = Callable[[str], None]
"""Sends the server's process a signal, by name, and returns when it has worked."""


class Relay:
    """Listens on two sockets per direction: frames come `out` of QEMU and go back `into` it."""

    def __init__(self, folder: Path, link: FaultyLink, signal: Signal) -> None:
        self._link = link
        self._signal = signal
        self._hands = ThreadPoolExecutor(1, "server's process")
        self._ending = threading.Event()
        self._acting: Future[None] | None = None
        self._stack = ExitStack()
        self.paths = {
            (direction, end): folder / f"{direction}-{end}.sock"
            for direction in DIRECTIONS
            for end in ("out", "into")
        }
        self._listeners: dict[tuple[str, str], socket.socket] = {}
        for key, path in self.paths.items():
            listener = self._stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen(1)
            self._listeners[key] = listener
        self._out: dict[str, socket.socket] = {}
        self._into: dict[str, socket.socket] = {}
        self._partial = {direction: bytearray() for direction in DIRECTIONS}
        self._unsent = {direction: bytearray() for direction in DIRECTIONS}
        self._later: list[tuple[int, int, Due]] = []
        self._order = itertools.count()
        self._failed: BaseException | None = None
        self._wake, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="faulty link", daemon=True)

    def start(self) -> None:
        """Accept QEMU's connections, which it has made by now, and carry frames."""
        for (direction, end), listener in self._listeners.items():
            listener.settimeout(_JOIN_SECONDS)
            try:
                connection, _ = listener.accept()
            except TimeoutError as error:
                raise TestbedError(
                    "QEMU did not connect to the faulty link",
                    cause="it is too busy, or has ended",
                    action="See `rocelab status` for whether the node is still up.",
                ) from error
            connection.setblocking(False)
            self._stack.enter_context(connection)
            (self._out if end == "out" else self._into)[direction] = connection
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether frames are being carried: False before `start`, and after a failure."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop, and close all sockets. Raises TestbedError if the link failed meanwhile."""
        self._ending.set()
        self._hands.shutdown()
        os.write(self._stop, b"x")
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)
        self._stack.close()
        os.close(self._stop)
        os.close(self._wake)
        for path in self.paths.values():
            path.unlink(missing_ok=True)
        if self._failed is not None:
            raise TestbedError(
                "the faulty link failed while the benchmark ran",
                cause=repr(self._failed),
                action="Run it again.",
            )

    def _run(self) -> None:
        try:
            with selectors.DefaultSelector() as ready:
                ready.register(self._wake, selectors.EVENT_READ)
                for direction, end in self._out.items():
                    ready.register(end, selectors.EVENT_READ, direction)
                while self._turn(ready):
                    pass
        except Exception as error:
            # told by `close`, in the thread that can do something about it
            self._failed = error

    def _turn(self, ready: selectors.BaseSelector) -> bool:
        """Wait for frames or a time, and carry what there is; return whether to go on."""
        for key, _ in ready.select(self._timeout()):
            if key.fd == self._wake and os.read(self._wake, 1) != _ACTED:
                return False
            if key.data in self._out and key.fileobj is self._out[key.data]:
                data = self._out[key.data].recv(_READ)
                if not data:
                    # QEMU has ended, or its redirector was removed
                    ready.unregister(key.fileobj)
                    continue
                self._partial[key.data] += data
                for frame in self._whole(key.data):
                    now = time.monotonic_ns()
                    self._hand_over(self._link.frame(key.data, frame, now), now)
        now = time.monotonic_ns()
        self._act(now)
        self._hand_over(self._link.late(now), now)
        while self._later and self._later[0][0] <= now:
            self._send(heapq.heappop(self._later)[2])
        for direction in DIRECTIONS:
            self._flush(direction, ready)
        return True

    def _act(self, now_ns: int) -> None:
        """Do to the server's process what the link waits for, in another thread."""
        if self._acting is not None and self._acting.done():
            self._acting.result()
            self._acting = None
            self._hand_over(self._link.done(now_ns), now_ns)
        fault = self._link.awaits
        if fault is None or self._acting is not None:
            return
        self._acting = self._hands.submit(
            self._signal, "KILL" if fault.action is Action.KILL else "STOP"
        )
        self._acting.add_done_callback(lambda _: os.write(self._stop, _ACTED))
        if fault.action is Action.STOP:
            self._hands.submit(self._continue, self._acting, fault)

    def _continue(self, stopped: Future[None], fault: FaultPlan) -> None:
        """Let the server's process go on when its time is over, or the benchmark is."""
        if stopped.exception() is None:
            self._ending.wait(fault.duration_us / 1e6)
            self._signal("CONT")

    def _timeout(self) -> float:
        if not self._later:
            return _IDLE_SECONDS
        return max(0.0, min(_IDLE_SECONDS, (self._later[0][0] - time.monotonic_ns()) / 1e9))

    def _whole(self, direction: str) -> Iterator[bytes]:
        buffer = self._partial[direction]
        while len(buffer) >= _LENGTH:
            length = int.from_bytes(buffer[:_LENGTH])
            if length > _LONGEST_FRAME:
                raise ValueError(f"a frame of {length} bytes")
            if len(buffer) < _LENGTH + length:
                return
            frame = bytes(buffer[_LENGTH : _LENGTH + length])
            del buffer[: _LENGTH + length]
            yield frame

    def _hand_over(self, frames: list[Due], now_ns: int) -> None:
        for due in frames:
            if due.at_ns <= now_ns:
                self._send(due)
            else:
                heapq.heappush(self._later, (due.at_ns, next(self._order), due))

    def _send(self, due: Due) -> None:
        self._unsent[due.direction] += len(due.frame).to_bytes(_LENGTH) + due.frame

    def _flush(self, direction: str, ready: selectors.BaseSelector) -> None:
        """Write what QEMU takes; it may itself wait until we read, so never block."""
        unsent, end = self._unsent[direction], self._into[direction]
        try:
            while unsent:
                del unsent[: end.send(unsent[:_READ])]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            unsent.clear()
        waits = end in (key.fileobj for key in ready.get_map().values())
        if unsent and not waits:
            ready.register(end, selectors.EVENT_WRITE)
        elif not unsent and waits:
            ready.unregister(end)
