# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a user's command as a step of a cell."""

from __future__ import annotations

from pathlib import Path

from rocelab.errors import CellError, CommandError, CommandTimeoutError, StallError
from rocelab.measure.command import conduct, files, permission
from rocelab.measure.command.attachment import Attachment
from rocelab.measure.command.request import Request
from rocelab.measure.command.session import status_text
from rocelab.measure.rig import Rig
from rocelab.plans.benchmarks.tool import Job, Tool
from rocelab.record import layout
from rocelab.testbed.node import Completed


def run(
    tool: Tool, job: Job, rig: Rig, *, timeout: int, into: Path, attached: Attachment | None
) -> tuple[Completed, int]:
    """Run the command of a job, and return how it ended and how many ns it ran on its node.

    What it prints is kept in the folder `into`.

    `attached`: it has the streams of this process, and more files. Raises StallError when it takes
    longer than `timeout` seconds, CellError when it does not run or fails, TestbedError when a node
    does not answer.
    """
    assert job.command is not None, "plan_file reads it for this tool"
    request = Request(
        tool.client(job),
        server=tool.server_argv(job),
        ready=job.command.is_ready,
        transport=rig.transport,
        seconds=timeout,
        files=files.Files(permission.folder_of_plan(job.command.folder)),
    )
    if attached is not None:
        # its words are not a plan's
        request = attached.request
    try:
        ended = conduct.run(
            *(request, rig.testbed),
            ends=(job.client, job.server),
            into=into,
            attached=attached is not None,
        )
    except CommandError as error:
        if attached is not None:
            attached.error = error
        kind = StallError if isinstance(error, CommandTimeoutError) else CellError
        raise kind(error.what, cause=error.cause, action=error.action) from error
    if attached is not None:
        attached.status = ended.status
    if ended.status and not job.command.may_fail:
        raise CellError(
            f"the command ended with {status_text(ended.status)}",
            cause=_tail(into) or "it printed nothing",
            action="Look at client.err and server.err in the cell's folder; if that is a result, "
            "set may_fail = true.",
        )
    text = (into / layout.output("client")).read_bytes().decode(errors="replace")
    return Completed(request.argv, ended.status, text, ""), ended.wall_ns


def _tail(into: Path) -> str:
    """The last lines that the command and its server printed on stderr."""
    output = b"".join(
        (into / name).read_bytes()[-1000:]
        for name in map(layout.errors, ("client", "server"))
        if (into / name).exists()
    )
    return "\n".join(output.decode(errors="replace").strip().splitlines()[-3:])[-500:]
