# SPDX-License-Identifier: GPL-2.0-or-later
"""The process of a benchmark's server, and signals that reach it at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rocelab.errors import TestbedError
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.interface import MARK

SEND = f"""
send() {{
	found=
	for pid in $(pgrep -x "$2"); do
		grep -qsz ^{MARK}= "/proc/$pid/environ" || continue
		grep -qsxzF -- "$3" "/proc/$pid/cmdline" || continue
		kill "-$1" "$pid" || return
		while [ "$1" = KILL ] && grep -qs '^State:.[^ZX]' "/proc/$pid/status"; do sleep 0.01; done
		found=1
	done
	[ "$found" ]
}}
"""
"""Shell function `send SIGNAL PROGRAM DEVICE`, which fails if there is no such process.

SIGKILL has worked when the process is gone, and its queue pairs with it. On one machine the
client's process has the same name: only the server's has the server's device as an argument.
"""
_SAYS = "rocelab-signalled"
_READY = f"{_SAYS} nothing yet"
# a signal's name a line
_SIGNALS = f"""
{SEND}
echo "{_READY}"
sent=0
while read -r signal; do
	sent=$((sent + 1))
	if send "$signal" "$1" "$2"; then echo "{_SAYS} $sent: yes"; else echo "{_SAYS} $sent: no"; fi
done
"""
_START_SECONDS = 60
_SEND_SECONDS = 60


@dataclass(frozen=True)
class Server:
    """The process of a benchmark's server: its program, and the verbs device that it names."""

    node: Node
    program: str
    device: str


class Signals:
    """A shell on the server's node that waits for signals to send.

    A client retries for a few seconds only, in which a login to a busy node may not succeed.
    """

    def __init__(self, server: Server, shell: Process) -> None:
        self._server = server
        self._shell = shell
        self._sent = 0

    def send(self, signal: str) -> None:
        """Send a signal by name, and return when it has worked. Raises TestbedError."""
        self._sent += 1
        self._shell.say(signal)
        answer = self._shell.wait_for_line(f"{_SAYS} {self._sent}: ", timeout=_SEND_SECONDS)
        # one that has ended need not continue
        if answer.endswith("no") and signal != "CONT":
            raise TestbedError(
                f"no process {self._server.program} on {self._server.node.name} "
                f"could get SIG{signal}",
                cause="the server had ended",
                action="Choose an earlier message for the fault.",
            )


@contextmanager
def signals(server: Server) -> Iterator[Signals]:
    """Wait on the server's node for signals to send. Raises TestbedError."""
    words = (server.program, server.device)
    shell = server.node.start(("sh", "-c", _SIGNALS, "sh", *words), lifeline=True)
    try:
        shell.wait_for_line(_READY, timeout=_START_SECONDS)
        yield Signals(server, shell)
    finally:
        shell.kill()
