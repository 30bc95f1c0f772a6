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


class NotFoundError(CommandError):
    """The node has no such command."""

    exit_code = ExitCode.NOT_FOUND


class NotExecutableError(CommandError):
    """The command is on the node and cannot run."""

    exit_code = ExitCode.NOT_EXECUTABLE


def check(session: Session, code: int) -> None:
    """Raise CommandError if a command that ended with `code` never began."""
    said = session.error_output if code else ""
    node, program = session.guard.node.name, session.argv[0]
    if found := _LIBRARY.search(said):
        raise NotFoundError(
            f"{session.name} lacks the library {found['name']}",
            cause=f"it was linked with a library that {node} does not have",
            action="Link it statically, or build it on the node: the image has gcc and make.",
        )
    if found := _VERSION.search(said):
        raise NotExecutableError(
            f"{session.name} needs {found['version']}, which {found['file']} there does not have",
            cause=f"it was built on a newer release than that of {node}",
            action="Build it on the node, which has gcc and make, or on the node's release.",
        )
    if code not in (ExitCode.NOT_EXECUTABLE, ExitCode.NOT_FOUND):
        return
    refused = session.guard.read("refused")
    if not refused:
        return  # the command itself ended so, as a shell may
    if code == ExitCode.NOT_FOUND:
        raise NotFoundError(
            f"there is no command {program} on {node}",
            cause="its name is misspelt, or it is not in the node's image or in the files there",
            action="Look with `rocelab exec -- sh -c 'ls /usr/bin'`.",
        )
    raise NotExecutableError(
        f"{program} on {node} is not executable",
        cause=f"{refused!a:.100} is a folder, or its mode does not let it run",
        action="Set its mode with `chmod +x`.",
    )
