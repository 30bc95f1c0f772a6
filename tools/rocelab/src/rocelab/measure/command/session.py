# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's command on one node: its streams, its signals and its exit status."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

from rocelab.errors import TestbedError, UsageError
from rocelab.measure.command import output
from rocelab.measure.command.guard import MARK, Guard, script
from rocelab.measure.command.output import Copy, Sink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.endpoint import machine_of

_LOST = 255
"""ssh(1)'s status if the connection broke; the command's own is written down on the node."""
_KILLED = 137
_MAX_WORD_BYTES = 120_000
"""Of a command line: Linux takes a word of 128 KiB, and ssh(1) gets ours as one."""


def status_text(code: int) -> str:
    """Return an exit status for people: 139 is a signal's."""
    try:
        return f"{code} ({signal.Signals(code - 128).name})"
    except ValueError:
        return str(code)


class Session:
    """A command that runs on a node, in the folder of its guard."""

    def __init__(
        self,
        guard: Guard,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        out: Sequence[Sink] = (),
        err: Sequence[Sink] = (),
        stdin: int | None = None,
        tty: bool = False,
        ended: Callable[[Session], None],
    ) -> None:
        """Start it. `ended` is called from a thread, when the command and its output have ended.

        `out` and `err` get its streams, `stdin` is the descriptor of its input; with `tty` it has
        the terminal of this process instead. Raises UsageError if the command line is too long.
        """
        self.guard = guard
        self.argv = tuple(argv)
        self.killed = False
        machine = machine_of(guard.node)
        assert isinstance(machine, CommandNode)
        variables = [f"{name}={value}" for name, value in environment.items()]
        words = (script("command.sh"), "sh", MARK, guard.folder, *variables, "--", *argv)
        line = machine.connection.command(("sh", "-c", *words))
        if max(len(word.encode(errors="surrogateescape")) for word in line) > _MAX_WORD_BYTES:
            raise UsageError(
                "the command line is too long",
                cause=f"with its quotes it has more than {_MAX_WORD_BYTES:,} bytes",
                action="Write it into a script, and run that.",
            )
        if tty:
            self._process = subprocess.Popen([line[0], "-t", *line[1:]])
            self._copies: list[Copy] = []
        else:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C must reach only rocelab, which passes it on
                start_new_session=True,
            )
            assert self._process.stdout is not None
            assert self._process.stderr is not None
            self._copies = [Copy(self._process.stdout, out), Copy(self._process.stderr, err)]
        if stdin is not None and self._process.stdin is not None:
            output.feed(stdin, self._process.stdin)
        threading.Thread(target=self._wait, args=(ended,), daemon=True).start()

    def _wait(self, ended: Callable[[Session], None]) -> None:
        self._process.wait()
        for copy in self._copies:
            copy.join()
        ended(self)

    @property
    def name(self) -> str:
        """The command and its node, for messages."""
        return f"`{self.argv[0]}` on {self.guard.node.name}"

    @property
    def tail(self) -> str:
        """The last lines that it printed."""
        output = b"\n".join(copy.tail for copy in self._copies).decode(errors="replace")
        return "\n".join(line for line in output.splitlines()[-12:] if line.strip())[-600:]

    @property
    def error_output(self) -> str:
        """The end of what it printed on stderr."""
        return b"".join(copy.tail for copy in self._copies[1:]).decode(errors="replace")

    def send(self, signal: str) -> None:
        """Send it a signal, such as `TERM`."""
        self.killed = self.killed or signal == "KILL"
        self.guard.send(signal)

    def abandon(self) -> None:
        """End the way to it: the node does not answer."""
        self._process.kill()

    def status(self) -> int:
        """Return the exit status of a command that has ended, 128 and more for a signal.

        Raises TestbedError if the connection broke, OSError if this process's output cannot be
        written.
        """
        for copy in self._copies:
            if copy.failed is not None:
                raise copy.failed
        code = self._process.returncode
        if self.killed and code in (_LOST, -9):
            return _KILLED
        if code == _LOST and self.guard.read("status") != str(_LOST):
            raise TestbedError(
                f"the connection to {self.guard.node.name} broke",
                cause=f"the node ended, or its sshd did; {self.name} had not",
                action=f"See whether `{self.guard.node.login}` works.",
            )
        return code
