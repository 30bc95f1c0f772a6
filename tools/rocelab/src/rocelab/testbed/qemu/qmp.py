# SPDX-License-Identifier: GPL-2.0-or-later
"""Send a QMP command to a QEMU process, with the QEMU project's own library."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from qemu.qmp import QMPClient, QMPError

from rocelab.errors import TestbedError


def execute(socket: Path, command: str, arguments: dict[str, Any]) -> object:
    """Connect, execute one command, disconnect; return its result. Raises TestbedError."""

    async def session() -> object:
        client = QMPClient("rocelab")
        await client.connect(str(socket))
        try:
            return await client.execute(command, arguments)
        finally:
            await client.disconnect()

    try:
        return asyncio.run(asyncio.wait_for(session(), 30))
    # QEMU's library lets EOFError through when QEMU ends during the greeting
    except (QMPError, OSError, TimeoutError, EOFError) as error:
        raise TestbedError(
            f"QEMU did not execute {command}",
            cause=str(error) or "it does not answer",
            action="See `rocelab status` for whether the node is still up.",
        ) from error
