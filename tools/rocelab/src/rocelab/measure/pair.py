# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a benchmark's server and client on two nodes; wait until the server listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NoReturn

from rocelab.errors import CellError, StallError, TestbedError, TransientError
from rocelab.measure import listening, pinning
from rocelab.plans.benchmarks.timed import TIMED
from rocelab.plans.benchmarks.tool import Job, Tool, process_name
from rocelab.testbed.node import Completed, Node, Process
from rocelab.testbed.node.interface import mark

_LISTEN_TIMEOUT = 180
"""Seconds; UCX took 60 to start for the first time on a busy emulated node."""
_END_TIMEOUT = 60
_TIMED_OUT = 124
"""The status that timeout(1) exits with."""


def run(
    tool: Tool,
    job: Job,
    client: Node,
    server: Node,
    *,
    timeout: int,
    keep: Callable[[str, Completed], None] = lambda _name, _done: None,
    must_fail: bool = False,
    environment: Sequence[str] = (),
    around: AbstractContextManager[None] | None = None,
) -> Completed:
    """Start the server, wait until it listens, run the client, and wait for the server to end.

    Where the kernel serves, there is only the client. Returns the completed client. `keep` gets
    each process (`client`, `server`) as soon as it has ended, even if it failed, to save its
    output. Raises CellError when either fails or the client takes longer than `timeout` seconds,
    TransientError when another try may do better, TestbedError when a node does not answer. With
    `must_fail`, the client has to fail by itself, and the server is then killed. Both have the
    variables `environment`, as `NAME=value`. The client runs within `around`, and what is left of
    the server.
    """
    if tool.server is None:
        return _run_client(tool, job, client, timeout, keep, environment)
    process = _start(tool, job, server, environment)
    try:
        _wait_until_listening(process, tool, job, server)
        with around or nullcontext():
            done = _run_client(tool, job, client, timeout, keep, environment, must_fail=must_fail)
            if done.returncode:
                process.kill()
                keep("server", listening.own(process.wait(timeout=_END_TIMEOUT)))
                return done
            ended = _wait_for_end(process, tool, job, server)
        keep("server", ended)
        if must_fail:
            raise CellError(
                f"{job.test.program}, {job.size} bytes: the client ended without an error",
                cause="the fault that should have ended its connection met no packet",
                action="Choose a message that the client sends: `iterations` limits them.",
            )
        if ended.returncode and not tool.transfer:
            raise CellError(
                f"{job.test.program}: the server on {server.name} exited with {ended.returncode}",
                cause=_tail(ended),
                action="Look at server.out and server.err in the cell's folder.",
            )
        return done
    finally:
        process.kill()


def _run_client(
    tool: Tool,
    job: Job,
    client: Node,
    timeout: int,
    keep: Callable[[str, Completed], None],
    environment: Sequence[str],
    *,
    must_fail: bool = False,
) -> Completed:
    # timeout(1) runs on the node, so that nothing keeps running there
    near = (*pinning.on(job.client.cpus), *(TIMED if tool.transfer or tool.timed else ()))
    limited = (*environment, "timeout", "--kill-after=5", str(timeout), *near, *tool.client(job))
    done = client.run(mark(limited), timeout=timeout + 60, check=False)
    keep("client", done)
    if problem := tool.passing(done.returncode, done.stdout + done.stderr):
        raise TransientError(
            f"{job.test.program}, {job.size} bytes: {problem.what}",
            cause=_tail(done),
            action=problem.action,
            tries=problem.tries,
        )
    expected = must_fail and done.returncode != _TIMED_OUT
    if done.returncode and not expected:
        _raise_failed(job, done, timeout)
    return done


def _start(tool: Tool, job: Job, server: Node, environment: Sequence[str]) -> Process:
    """Start the server; file servers start as root and then drop to another user.

    A server with a configuration file does that itself; for others setpriv(1) does.
    """
    by_rdma_cm = tool.transfer.by == "rdma_cm" if tool.transfer else job.server.rdma_cm
    by_rdma_cm = by_rdma_cm or job.retry_count is not None
    by_rdma_cm = by_rdma_cm or (tool.listens_by == "rdma_cm" and bool(job.server.device))
    within = ("env", *environment) if environment else ()
    server_argv = (*within, *pinning.on(job.server.cpus), *tool.server_argv(job))
    command = listening.saying(server_argv, job.tcp_port, by_rdma_cm=by_rdma_cm)
    if tool.transfer is None:
        return server.start(command)
    become: tuple[str, ...] = ()
    if tool.transfer.config is None:
        user = tool.transfer.user
        become = ("setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs")
    return server.root.start((*become, *command))


def _wait_until_listening(process: Process, tool: Tool, job: Job, server: Node) -> None:
    try:
        listening.wait(process, timeout=_LISTEN_TIMEOUT)
    except TestbedError:
        output = ""
        process.kill()
        with suppress(TestbedError):
            output = _tail(listening.own(process.wait(timeout=5)))
        server.run(("true",))  # a node that has died says so
        program = process_name(tool.server_argv(job))
        raise CellError(
            f"{job.test.program}: the server on {server.name} never listened on {job.tcp_port}",
            cause=output or "it hangs, or another program uses the port",
            action=f"Start it by hand: `{server.login} {program} …`.",
        ) from None


def _wait_for_end(process: Process, tool: Tool, job: Job, server: Node) -> Completed:
    if tool.transfer:
        process.kill()  # file servers wait for the next client
    try:
        return listening.own(process.wait(timeout=_END_TIMEOUT))
    except TestbedError as error:
        raise CellError(
            f"{job.test.program}: the server on {server.name} did not end after its client",
            cause=error.cause,
            action="Look at server.out and server.err in the cell's folder.",
        ) from error


def _raise_failed(job: Job, done: Completed, timeout: int) -> NoReturn:
    stalled = done.returncode == _TIMED_OUT
    problem = f"did not end within {timeout} s" if stalled else f"exited with {done.returncode}"
    raise (StallError if stalled else CellError)(
        f"{job.test.program}, {job.size} bytes: the client {problem}",
        cause=_tail(done),
        action="If it was only slow, use fewer iterations or a larger `timeout` in the plan.",
    )


def _tail(done: Completed) -> str:
    """Return the last lines that a command printed."""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "\n".join(lines[-3:])[-500:]
