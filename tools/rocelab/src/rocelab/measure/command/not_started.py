# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a command did not start on its node: it is not there, or lacks something."""

from __future__ import annotations

import re

from rocelab.errors import CommandError, ExitCode
from rocelab.measure.command.session import Session

_LIBRARY = re.compile(
    r"error while loading shared libraries: (?P<name>[\w.+-]{1,100}): cannot open shared object"
)
_VERSION = re.compile(
    r": (?P<file>\S{1,200}): version `(?P<version>[\w.+-]{1,60})' not found \(required by "
)


_MACHINES = {
    "0300": "32-bit x86",
    "1500": "POWER",
    "0015": "POWER",
    "0016": "S/390",
    "2800": "32-bit Arm",
    "3e00": "64-bit x86",
    "b700": "64-bit Arm",
    "f300": "RISC-V",
}
"""By e_machine (elf(5)), as its bytes are in the file."""


class NotFoundError(CommandError):
    """The node has no such command."""

    exit_code = ExitCode.NOT_FOUND


class NotExecutableError(CommandError):
    """The command is on the node and cannot run."""

    exit_code = ExitCode.NOT_EXECUTABLE


def check(session: Session, code: int) -> None:
    """Raise CommandError if a command that ended with `code` never began."""
    errors = session.error_output if code else ""
    node, program = session.guard.node.name, session.argv[0]
    if match := _LIBRARY.search(errors):
        raise NotFoundError(
            f"{session.name} lacks the library {match['name']}",
            cause=f"it was linked with a library that {node} does not have",
            action="Link it statically, or build it on the node: the image has gcc and make.",
        )
    if match := _VERSION.search(errors):
        raise NotExecutableError(
            f"{session.name} needs {match['version']}, which {match['file']} there does not have",
            cause=f"it was built on a newer release than that of {node}",
            action="Build it on the node, which has gcc and make, or on the node's release.",
        )
    if code not in (ExitCode.NOT_EXECUTABLE, ExitCode.NOT_FOUND):
        return
    # empty if the command itself ended so, as a shell may
    kind, _, detail = session.guard.read("refused").partition(" ")
    detail = f"{detail!a:.100}"
    if kind == "absent":
        raise NotFoundError(
            f"there is no command {program} on {node}",
            cause="its name is misspelt, or it is neither in the node's image nor in what was "
            "copied there",
            action="Copy a program of yours with --folder or --copy; `rocelab exec -- ls /usr/bin` "
            "lists the image's.",
        )
    if kind == "interpreter":
        raise NotFoundError(
            f"{program} needs {detail}, which {node} does not have",
            cause="it is a script for a program, or a program for a C library, that is not in the "
            "node's image",
            action="Link it statically, or build it on the node, which has gcc and make.",
        )
    if kind == "machine":
        machine = _MACHINES.get(detail.strip("'")[-4:], "another processor")
        raise NotExecutableError(
            f"{program} cannot run on {node}: it was built for {machine}",
            cause=f"{node} has the processor of this machine",
            action="Build it for that, or on the node, which has gcc and make.",
        )
    if kind == "mode":
        raise NotExecutableError(
            f"{program} on {node} is not executable",
            cause=f"{detail} is a folder, or its mode does not let it run",
            action="Set its mode with `chmod +x`.",
        )
