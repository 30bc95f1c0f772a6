# SPDX-License-Identifier: GPL-2.0-or-later
"""The probes that a run has loaded: each once on each machine, for all of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rocelab.measure.probes.probe_session import ProbeSession
from rocelab.testbed.node import Node, Printed
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.private_folder import private_folder


@dataclass(frozen=True)
class ProbeTask:
    """What a probe does in a window on a machine."""

    machine: Node
    argv: tuple[str, ...]
    """The probe and its options, which last as long as it is loaded."""
    node: str = ""
    """The node, where one machine has a probe for each of its nodes."""
    file: str = ""
    """The file that it writes for the window, in a folder that only root can read."""
    reports: bool = True
    """Whether it reports on standard output."""


def _key(task: ProbeTask) -> tuple[str, str, str]:
    return (task.machine.name, task.argv[0], task.node)


class LoadedProbes:
    """Probes are loaded when first needed; all end with the context."""

    def __init__(
        self,
        programs: Sequence[str] = (),
        hurry: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`programs`: names of the processes that are a benchmark in any step to come.

        Within `hurry` the testbed spares waits for the kernel's timers: for each function that a
        probe leaves, ftrace_shutdown() waits for a period of RCU Tasks, 0.1 s and more.
        """
        self.programs = tuple(programs)
        self._hurry = hurry
        self._sessions: dict[tuple[str, str, str], ProbeSession] = {}
        self._folders: dict[str, str] = {}
        self._made = ExitStack()

    def __enter__(self) -> LoadedProbes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all: they hold the driver."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        with self._hurry():
            at_once(lambda session: session.close(), sessions)
        self._folders.clear()
        self._made.close()

    def load(self, tasks: Sequence[ProbeTask]) -> list[ProbeSession]:
        """Load what is not loaded yet; return the sessions. Raises ProbeError."""
        sessions, new = [], []
        for task in tasks:
            key = _key(task)
            session = self._sessions.get(key)
            if session is None or session.argv != task.argv:
                if session is not None:
                    session.close()
                self._sessions[key] = session = ProbeSession(task.machine, task.argv)
                new.append(session)
            sessions.append(session)
        try:
            at_once(lambda session: session.ready(), new)
        except BaseException:
            self.close()
            raise
        return sessions

    def detach_others(self, tasks: Sequence[ProbeTask]) -> None:
        """Leave nothing attached of probes that have none of the tasks. Raises ProbeError."""
        own = {_key(task) for task in tasks}
        others = [session for key, session in self._sessions.items() if key not in own]
        try:
            with self._hurry():
                at_once(lambda session: session.detach(), others)
        except BaseException:
            self.close()
            raise

    def fetch(self, task: ProbeTask, into: Path) -> None:
        """Move what a window wrote from the machine to the file `into`."""
        path = self._path(task)
        task.machine.root.get(path, into)
        task.machine.root.run(["rm", "-f", path])

    def _path(self, task: ProbeTask) -> str:
        """Where on the machine the probe writes; empty if nowhere."""
        if not task.file:
            return ""
        root, name = task.machine.root, task.machine.name
        if name not in self._folders:
            self._folders[name] = self._made.enter_context(private_folder(root, "probe"))
        return f"{self._folders[name]}/{task.file}"

    @contextmanager
    def window(self, tasks: Sequence[ProbeTask]) -> Iterator[list[Printed]]:
        """Have probes watch while the context lasts.

        Yields a list that has what they printed, in order, once the context has ended without an
        error; some then stay attached (`detach_others`). After an error, all are loaded again for
        the next window. Raises ProbeError.
        """
        printed: list[Printed] = []
        both = list(zip(self.load(tasks), tasks, strict=True))
        try:
            begins = [(session, self._path(task)) for session, task in both]
            at_once(lambda each: each[0].begin(each[1]), begins)
            yield printed
            printed += at_once(lambda each: each[0].end(reports=each[1].reports), both)
        except BaseException:
            self.close()
            raise
