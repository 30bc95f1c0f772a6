# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the two ends of a benchmark on two nodes, without a fixed wait between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from rocelab.bench.tool import Job, Tool
from rocelab.bench.transfer import TIMED
from rocelab.errors import CellError, TestbedError
from rocelab.node import Completed, Node, Process

_LISTENS_WITHIN = 60
"""Seconds; under emulation a program may need several of them to start."""
_ENDS_WITHIN = 60
_TIMED_OUT = 124
"""What timeout(1) exits with."""
# /proc answers ten times sooner than ss(8). Columns: local address:port, remote address:port, state
# (0A: listening).
_LISTENS_BY_TCP = 'grep -qE ":$(printf %04X "$1") 0+:0000 0A " /proc/net/tcp /proc/net/tcp6'
_LISTENS_BY_RDMA_CM = 'rdma resource show cm_id | grep -qE "state LISTEN .*:$1( |$)"'
# The loop runs on the node: one round trip instead of one per look. A server that is not there for
# twenty looks in a row has ended, or never began.
_UNTIL_LISTENING = """
missed=0
until {}; do
    if pgrep -x "$2" >/dev/null; then missed=0; else missed=$((missed + 1)); fi
    [ "$missed" -lt 20 ] || exit 3
    sleep 0.05
done
"""


def run(
    tool: Tool,
    job: Job,
    client: Node,
    server: Node,
    *,
    timeout: int,
    keep: Callable[[str, Completed], None] = lambda _name, _done: None,
) -> Completed:
    """Start the server, wait until it listens, run the client, and let the server end.

    Returns the client. `keep` is given each end (`client`, `server`) when it has ended, before it
    is judged, so that the output of a failure stays, too. Raises CellError when either end fails or
    the client takes longer than `timeout` seconds, and TestbedError when a node does not answer.
    """
    process = _start(tool, job, server)
    try:
        _wait_until_listening(process, tool, job, server)
        # timeout(1) on the node, so that nothing is left running there
        around = TIMED if tool.transfer else ()
        limited = ("timeout", "--kill-after=5", str(timeout), *around, *tool.client(job))
        done = client.run(limited, timeout=timeout + 60, check=False)
        keep("client", done)
        if done.returncode:
            _failed(job, done, timeout)
        ended = _wait_for_end(process, tool, job, server)
        keep("server", ended)
        if ended.returncode and not tool.transfer:
            raise CellError(
                f"{job.test.program}: the server on {server.name} exited with {ended.returncode}",
                cause=_tail(ended),
            )
        return done
    finally:
        process.kill()


def _start(tool: Tool, job: Job, server: Node) -> Process:
    """A server of files is started by root, and becomes another user, by itself or here."""
    if tool.transfer is None:
        return server.start(tool.server(job))
    become: tuple[str, ...] = ()
    if tool.transfer.config is None:
        user = tool.transfer.user
        become = ("setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs")
    return server.root.start((*become, *tool.server(job)))


def _wait_until_listening(process: Process, tool: Tool, job: Job, server: Node) -> None:
    by_rdma_cm = tool.transfer is not None and tool.transfer.by == "rdma_cm"
    script = _UNTIL_LISTENING.format(_LISTENS_BY_RDMA_CM if by_rdma_cm else _LISTENS_BY_TCP)
    port, program = str(job.tcp_port), PurePosixPath(tool.server(job)[0]).name
    waited = server.run(
        ("timeout", str(_LISTENS_WITHIN), "sh", "-c", script, "sh", port, program),
        timeout=_LISTENS_WITHIN + 60,
        check=False,
    )
    if waited.returncode:
        said = ""
        process.kill()
        try:
            ended = process.wait(timeout=5)
            said = _tail(ended)
        except TestbedError:
            pass
        raise CellError(
            f"{job.test.program}: the server on {server.name} never listened on {job.tcp_port}",
            cause=said or "it hangs, or the port is taken",
        )


def _wait_for_end(process: Process, tool: Tool, job: Job, server: Node) -> Completed:
    if tool.transfer:
        process.kill()  # it would wait for the next client
    try:
        return process.wait(timeout=_ENDS_WITHIN)
    except TestbedError as error:
        raise CellError(
            f"{job.test.program}: the server on {server.name} outlived its client",
            cause=error.cause,
        ) from error


def _failed(job: Job, done: Completed, timeout: int) -> None:
    what = f"exited with {done.returncode}"
    if done.returncode == _TIMED_OUT:
        what = f"did not end within {timeout} s"
    raise CellError(
        f"{job.test.program}, {job.size} bytes: the client {what}",
        cause=_tail(done),
        action="Fewer iterations, or a larger `timeout` in the plan, if it was only slow.",
    )


def _tail(done: Completed) -> str:
    """The last words of a command."""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "\n".join(lines[-3:])[-500:]
