# SPDX-License-Identifier: GPL-2.0-or-later
"""A probe that is loaded on a machine and watches in windows (--control, docs/man/)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from rocelab.errors import CellError, TestbedError
from rocelab.testbed.node import Node, Printed

_LOAD_TIMEOUT = 120
_ANSWER_TIMEOUT = 120
_END_TIMEOUT = 10


class ProbeError(CellError):
    """A probe failed or gave an unusable result."""


class ProbeSession:
    """One probe on one machine."""

    def __init__(self, machine: Node, argv: Sequence[str]) -> None:
        """Start to load it, with the options `argv`; `ready` waits for that."""
        self.argv = tuple(argv)
        self._program = argv[0]
        self._machine = machine.name
        self._login = machine.login
        # its standard input closes when this process ends, however that happens: then it ends, too
        command = (self._program, "--control", *argv[1:])
        self._process = machine.root.start(command, lifeline=True)
        self._is_held = False

    def ready(self) -> None:
        """Wait until it is loaded. Raises ProbeError."""
        self._answer("ready", _LOAD_TIMEOUT)

    def begin(self, file: str = "") -> None:
        """Begin a window, which some probes write to a file on the machine. Raises ProbeError."""
        self._ask(f"start {file}".strip(), "started")
        self._is_held = False

    def end(self, *, reports: bool = True) -> Printed:
        """End the window; return what it printed, for one that `reports` a line on stdout.

        What detaches slowly stays attached until `detach`. Raises ProbeError.
        """
        printed = self._ask("hold", "held", reports=reports)
        self._is_held = True
        return printed

    def detach(self) -> None:
        """Have nothing attached on the machine between two windows. Raises ProbeError."""
        if self._is_held:
            self._ask("stop", "stopped")
        self._is_held = False

    def close(self) -> None:
        """End it."""
        # one that has ended may have left a line unread
        with suppress(TestbedError, OSError):
            self._process.release()
            self._process.wait(timeout=_END_TIMEOUT)
        self._process.kill()

    def _ask(self, line: str, answer: str, *, reports: bool = False) -> Printed:
        try:
            self._process.say(line)
        except TestbedError as error:
            raise self._error(f"{self._program} on {self._machine} has ended", error) from error
        return self._answer(answer, _ANSWER_TIMEOUT, reports=reports)

    def _answer(self, answer: str, timeout: float, *, reports: bool = False) -> Printed:
        done, failed = f"{self._program}: {answer}", f"{self._program}: error: "

        def is_whole(printed: Printed) -> bool:
            lines = printed.stderr.splitlines()
            if any(line.startswith(failed) for line in lines):
                return True
            # the streams come by different ways
            return done in lines and (not reports or printed.stdout.endswith("\n"))

        try:
            printed = self._process.take(is_whole, timeout=timeout)
        except TestbedError as error:
            raise self._error(
                f"{self._program} on {self._machine} did not say {answer!r}", error
            ) from error
        lines = printed.stderr.splitlines()
        if done not in lines:
            raise ProbeError(
                f"{self._program} on {self._machine} is not {answer}",
                cause="\n".join(lines)[-500:],
                action=self._action,
            )
        own = "".join(f"{line}\n" for line in lines if line != done)
        return Printed(printed.stdout, own)

    def _error(self, what: str, error: TestbedError) -> ProbeError:
        return ProbeError(what, cause=error.cause, action=self._action)

    @property
    def _action(self) -> str:
        return f"Run it by hand: `{self._login} {self._program}`."
