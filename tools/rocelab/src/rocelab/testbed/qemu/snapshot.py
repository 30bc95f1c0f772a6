# SPDX-License-Identifier: GPL-2.0-or-later
"""Save machines that run to snapshots, and let restored ones go on."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from rocelab.directory import temporary_folder
from rocelab.errors import TestbedError
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.qemu import snapshot_cache
from rocelab.testbed.qemu.qmp import execute

_POLL_SECONDS = 0.02
_SAVE_SECONDS = 300
_FASTEST = 10**12
"""Bytes per second: QEMU limits migrations, to spare networks."""


def save(machines: Sequence[tuple[Path, str, str]]) -> None:
    """Save machines, and let them go on: the QMP socket, the key and a description of each.

    Raises TestbedError, OSError; then, too, they go on.
    """
    sockets = [qmp for qmp, _, _ in machines]
    try:
        for qmp in sockets:
            execute(qmp, "stop", {})
        at_once(lambda one: snapshot_cache.write(one[1], one[2], _stream(one[0])), machines)
    finally:
        go_on(sockets)


def go_on(sockets: Sequence[Path]) -> None:
    """Let machines that stand still run, at once. Raises TestbedError."""
    at_once(lambda qmp: execute(qmp, "cont", {}), sockets)


def is_loaded(qmp: Path) -> bool:
    """Whether a machine that is restored has read its snapshot. Raises TestbedError."""
    return _answer(qmp, "query-status").get("status") != "inmigrate"


def _stream(qmp: Path) -> snapshot_cache.Save:
    """Return what writes a machine's state into a file."""

    def save_to(file: IO[bytes]) -> None:
        with temporary_folder(dir=qmp.parent, prefix="save-") as folder:
            path = Path(folder) / "s"
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(str(path))
                listener.listen(1)
                listener.settimeout(_SAVE_SECONDS)
                execute(qmp, "migrate-set-parameters", {"max-bandwidth": _FASTEST})
                execute(qmp, "migrate", {"uri": f"unix:{path}"})
                stream, _ = listener.accept()
        with stream, snapshot_cache.compressor(stream.fileno(), file) as compressor:
            stream.close()
            status = compressor.wait(_SAVE_SECONDS)
        if status or not _is_saved(qmp):
            raise TestbedError(
                "a machine was not saved",
                cause=f"zstd exited with {status}, or QEMU did not write all: is the disk full?",
                action="Free some space on that disk, or ignore it: the machine works.",
            )

    return save_to


def _is_saved(qmp: Path) -> bool:
    """Whether the whole state was written; waits until QEMU knows."""
    deadline = time.monotonic() + _SAVE_SECONDS
    while time.monotonic() < deadline:
        status = _answer(qmp, "query-migrate").get("status")
        if status in ("completed", "failed", "cancelled"):
            return bool(status == "completed")
        time.sleep(_POLL_SECONDS)
    return False


def _answer(qmp: Path, command: str) -> dict[str, Any]:
    answer = execute(qmp, command, {})
    return answer if isinstance(answer, dict) else {}
