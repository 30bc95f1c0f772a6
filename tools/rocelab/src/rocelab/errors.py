# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors that a user may see, and the table of exit codes.

An error says what failed, the likely cause and what to do. `rocelab.cli` prints these three and
exits with the error's code. Any other exception that reaches the command line is a bug.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the `rocelab` command (`rocelab --help` prints this table)."""

    OK = 0
    FINDINGS = 1
    """The command worked, and its findings have severity error."""
    USAGE = 2
    """Bad input: an option, a plan, an inventory or a capture."""
    MISSING = 3
    """This machine lacks something: a program, a package, memory, disk space."""
    TESTBED = 4
    """A node did not boot, died, or does not answer; a port is in use."""
    CELL = 5
    """The run ended, and at least one of its cells failed."""
    INTERNAL = 70
    """A bug in rocelab (sysexits.h: EX_SOFTWARE)."""
    TIMED_OUT = 124
    """`rocelab exec` ended the command when its time was over, as timeout(1) does."""
    NOT_RUN = 125
    """`rocelab exec` failed: what it returns is not the command's status."""
    NOT_EXECUTABLE = 126
    """`rocelab exec`: the command is there and cannot run, as in a shell."""
    NOT_FOUND = 127
    """`rocelab exec`: there is no such command on the node, as in a shell."""
    HUNG_UP = 129
    """SIGHUP, as a shell counts: 128 and the signal. Finished cells are kept in all three cases."""
    INTERRUPTED = 130
    """Ctrl-C, or SIGINT."""
    TERMINATED = 143
    """SIGTERM."""


def code_of_signal(name: str) -> ExitCode:
    """Return the exit code after a signal; its name may be `Ctrl-C`."""
    codes = {"SIGHUP": ExitCode.HUNG_UP, "SIGTERM": ExitCode.TERMINATED}
    return codes.get(name, ExitCode.INTERRUPTED)


class RocelabError(Exception):
    """What failed, why it probably did, and what to do about it."""

    exit_code: ExitCode = ExitCode.TESTBED

    def __init__(self, what: str, *, cause: str = "", action: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.action = action
        # tracebacks, as in failing tests, then show the cause as well as the message
        if cause:
            self.add_note(cause)


class UsageError(RocelabError):
    """The user's input cannot be used."""

    exit_code = ExitCode.USAGE


class MissingError(RocelabError):
    """The machine lacks a requirement."""

    exit_code = ExitCode.MISSING


class TestbedError(RocelabError):
    """A node or the network between nodes failed."""

    __test__ = False  # despite its name, not a pytest class
    exit_code = ExitCode.TESTBED


class CellError(RocelabError):
    """A cell of a run gave no usable result."""

    exit_code = ExitCode.CELL


class TransientError(CellError):
    """A benchmark failed for a reason that may have passed: it is worth `tries` in all."""

    def __init__(self, what: str, *, cause: str = "", action: str = "", tries: int = 1) -> None:
        super().__init__(what, cause=cause, action=action)
        self.tries = tries


class StallError(CellError):
    """A benchmark did not end within its time limit."""


class CommandError(RocelabError):
    """A user's command did not run to its end."""

    exit_code = ExitCode.NOT_RUN


class CommandTimeoutError(CommandError):
    """A user's command did not end within its time limit."""

    exit_code = ExitCode.TIMED_OUT
