# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that says when it listens, so that no other command has to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rocelab.testbed.node import Completed, Process

_SAYS = "rocelab-server: listens"
# Reading /proc is ten times faster than ss(8). Columns: local address:port, remote address:port,
# state (0A: listening).
_BY_TCP = 'grep -qE ":$1 0+:0000 0A " /proc/net/tcp /proc/net/tcp6'
_BY_RDMA_CM = 'rdma resource show cm_id | grep -qE "state LISTEN .*:$1( |$)"'
# The shell becomes the server, whose number is $$ also for what watches it meanwhile. One that has
# ended is a zombie (Z) until it is waited for. What watches is no child of the server: vsftpd dies
# of a child that it does not know.
_SCRIPT = """
runs() {{
	state=Z
	while read -r key state _ && [ "$key" != State: ]; do :; done 2>/dev/null <"/proc/$$/status"
	[ "$state" != Z ]
}}
(
	(
		until sleep 0.02; {listens}; do runs || exit; done
		echo "{says}" >&2
	) </dev/null &
)
shift
exec "$@"
"""


def saying(argv: Sequence[str], port: int, *, by_rdma_cm: bool) -> tuple[str, ...]:
    """Return the command that runs the server `argv`, which is to listen on `port`."""
    listens, shown = condition(port, by_rdma_cm=by_rdma_cm)
    return ("sh", "-c", _SCRIPT.format(listens=listens, says=_SAYS), "sh", shown, *argv)


def condition(port: int, *, by_rdma_cm: bool) -> tuple[str, str]:
    """Return the shell's command that succeeds when anything listens on `port`, and its `$1`."""
    return (_BY_RDMA_CM, str(port)) if by_rdma_cm else (_BY_TCP, f"{port:04X}")


def wait(process: Process, *, timeout: float) -> None:
    """Wait until the server listens. Raises TestbedError if it ends before, or does not."""
    process.wait_for_line(_SAYS, timeout=timeout)


def own(done: Completed) -> Completed:
    """Return what the server itself printed."""
    return replace(done, stderr=done.stderr.replace(f"{_SAYS}\n", ""))
