# SPDX-License-Identifier: GPL-2.0-or-later
"""The guard of a user's command on a node: its folder, its signals, and its end."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from importlib import resources
from typing import Self

from rocelab.errors import TestbedError
from rocelab.testbed.lease import end_marked
from rocelab.testbed.node import Node
from rocelab.testbed.node.interface import Process

MARK = "ROCELAB_EXEC"
"""Variable of the command and of its children; its value is the folder."""
_SAYS = "rocelab-exec: "
_ANSWER = re.compile(
    r"(?P<folder>/[A-Za-z0-9_./-]{1,200}/rocelab-exec\.[A-Za-z0-9]{6}) (?P<now>[0-9]{1,12})"
)
_START_SECONDS = 60
_END_SECONDS = 30
# the oldest first; what a hung program waits in is worth more than its name
_STATE = """
ours=$(grep -lsz "^$1=$2\\$" /proc/[0-9]*/environ | cut -d/ -f3 | head -n 8 | tr '\\n' ,)
[ "$ours" ] || exit 0
ps -o pid=,stat=,wchan:20=,args= -p "${ours%,}" | cut -c 1-160
"""


def script(name: str) -> str:
    """Return a shell script of this package, after the function that it may need."""
    return end_marked() + (resources.files("rocelab.measure.command") / name).read_text("utf-8")


class Guard:
    """Ends what a command started when the context ends, or this process does."""

    def __init__(self, node: Node) -> None:
        """Make the command's folder on the node. Raises TestbedError."""
        self.node = node
        self._process: Process = node.start(
            ("sh", "-c", script("guard.sh"), "sh", MARK), lifeline=True
        )
        try:
            line = self._process.wait_for_line(_SAYS, timeout=_START_SECONDS)
            match = _ANSWER.fullmatch(line.removeprefix(_SAYS))
            # the folder goes into command lines
            if match is None:
                raise TestbedError(
                    f"{node.name} made no folder for a command",
                    cause=f"it answered {line!a:.60}",
                    action=f"Look at TMPDIR on {node.name}.",
                )
            self.folder = match["folder"]
            self.ahead = int(match["now"]) - int(time.time())
            """By how many seconds the node's clock is ahead of ours."""
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        # a node that does not answer is dead, or its guard ends when it loses the connection
        with suppress(TestbedError):
            self._process.release()
            self._process.wait(timeout=_END_SECONDS)
        self._process.kill()

    @property
    def files(self) -> str:
        """The folder in which the command runs."""
        return f"{self.folder}/files"

    def send(self, signal: str) -> None:
        """Send the command a signal, such as `INT`. Does nothing on a node that died."""
        with suppress(TestbedError):
            self._process.say(signal)

    def state(self) -> str:
        """Describe what the command's processes do, a line for each; empty without any."""
        argv = ("sh", "-c", _STATE, "sh", MARK, self.folder)
        try:
            return self.node.run(argv, check=False).stdout.strip()
        except TestbedError as error:
            return error.what

    def read(self, name: str) -> str:
        """Return what command.sh wrote into a file; empty if it did not. Raises TestbedError."""
        path = f"{self.folder}/{name}"
        return self.node.run(("head", "-c", "4096", path), check=False).stdout.strip()
