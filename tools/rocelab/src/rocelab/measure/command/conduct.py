# SPDX-License-Identifier: GPL-2.0-or-later
"""Conduct a user's command on its nodes, with a server if there is one, to its end."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rocelab.errors import CommandError, CommandTimeoutError, RocelabError, TestbedError
from rocelab.measure.command import environment, files, libraries, not_started
from rocelab.measure.command.ends import ends_of
from rocelab.measure.command.guard import Guard
from rocelab.measure.command.output import Kept, Lines, LookFor, Sink, Stream
from rocelab.measure.command.ready import SAYS, watch
from rocelab.measure.command.request import Request
from rocelab.measure.command.session import Session, status_text
from rocelab.plans.benchmarks.tool import End
from rocelab.plans.command import fill_in
from rocelab.record import layout
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node import Node, awake
from rocelab.testbed.node.parallel import all_of, at_once

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENOUGH = 3
"""As many signals from outside end a command that ignores them."""
_LISTEN_SECONDS = 60
"""For a server to listen, unless a limit is given."""
_SERVER_SECONDS = 3
"""For a server to end by itself after its client."""
_WITHOUT_SERVER_SECONDS = 30
"""For a client to end after its server failed."""
_TERM_SECONDS = 5
_KILL_SECONDS = 10
_STDIN, _STDOUT, _STDERR = 0, 1, 2

Event = tuple[str, object]
"""What happened (`ended`, `ready`, `unready`, `signal`), and to whom."""


class _TimeIsOverError(Exception):
    """The request's time is over."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    """The worst one, if it ran on several nodes; the server's if only that failed."""
    wall_ns: int = 0
    """How long the first node's command ran, by the clock there; 0: unknown."""


def run(
    request: Request,
    testbed: Testbed,
    *,
    ends: Sequence[End] | None = None,
    into: Path | None = None,
    attached: bool = True,
) -> Ended:
    """Run the command to its end.

    `ends` are the nodes' if they are known. What client and server print is kept in the folder
    `into`. Where `attached`, they have the streams of this process, and signals to it go to them.
    Raises CommandError when a command cannot run, or its server does not, CommandTimeoutError when
    the time is over, TestbedError when a node does not answer.
    """
    try:
        with _Conductor(request, testbed, ends, into, attached=attached) as conductor:
            return conductor.run()
    except TestbedError:
        testbed.alive()  # if a node died, say that instead
        raise


class _Conductor:
    def __init__(
        self,
        request: Request,
        testbed: Testbed,
        ends: Sequence[End] | None,
        into: Path | None,
        *,
        attached: bool,
    ) -> None:
        self._request = request
        self._testbed = testbed
        self._ends = ends
        self._into = into
        self._attached = attached
        self._all = list(testbed.nodes)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._held = ExitStack()
        self._live: list[Session] = []
        self._signals = 0
        self._limit: Iterator[float] | None = None

    def __enter__(self) -> _Conductor:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def run(self) -> Ended:
        request = self._request
        chosen = self._all[:2] if request.server else list(request.on.of(self._all))
        guards = self._held.enter_context(all_of([_guarding(node) for node in chosen]))
        missing = self._missing_libraries(chosen[0])
        with files.pack(request.files, guards[0].ahead, missing) as archive:
            if archive is not None:
                at_once(lambda guard: files.send(archive, guard), guards)
        ends = self._ends or ends_of(chosen, request.transport)
        known = [
            environment.variables(node, end, self._peer(node))
            for node, end in zip(chosen, ends, strict=False)
        ]
        self._out, self._err = Stream(_STDOUT), Stream(_STDERR)
        self._named = len(chosen) > 1
        starts = list(zip(guards, known, strict=True))
        if missing:
            for guard, its in starts:
                its["LD_LIBRARY_PATH"] = files.library_folder(guard)
        if request.seconds is not None:
            self._limit = awake.slices(request.seconds)
        try:
            with self._signals_passed() if self._attached else nullcontext(), self._capture():
                try:
                    code = self._pair(starts) if request.server else self._each(starts)
                except _TimeIsOverError:
                    self._fail_late()
        except CommandError:
            self._fetch(guards[0], failed=True)
            raise
        self._fetch(guards[0], failed=code != 0)
        return Ended(code, _took(guards[0]) if self._into else 0)

    def _fetch(self, guard: Guard, *, failed: bool) -> None:
        # what a command left that failed is worth a look; that it left nothing is no news
        with suppress(*((RocelabError, OSError) if failed else ())):
            files.fetch(self._request.files, guard)

    def _missing_libraries(self, node: Node) -> dict[str, Path]:
        """Return what programs from here are linked with, and the nodes lack."""
        linked: dict[str, Path] = {}
        for argv in (self._request.argv, self._request.server):
            program = files.here(self._request.files, argv[0]) if argv else None
            if program is not None and libraries.is_program(program):
                linked |= libraries.of(program)
        return {name: linked[name] for name in libraries.lacking(node, linked)}

    def _peer(self, node: Node) -> Node | None:
        return next((other for other in self._all if other is not node), None)

    def _each(self, starts: Sequence[tuple[Guard, dict[str, str]]]) -> int:
        sessions = [
            self._start(guard, self._request.argv, known, stdin=not number)
            for number, (guard, known) in enumerate(starts)
        ]
        while self._live:
            self._next()
        return max(self._status(session) for session in sessions)

    def _pair(self, starts: Sequence[tuple[Guard, dict[str, str]]]) -> int:
        (at_client, clients), (at_server, servers) = starts
        server = self._start(at_server, self._request.server, servers)
        self._wait_until_ready(server)
        client = self._start(at_client, self._request.argv, clients, stdin=True)
        without: Iterator[float] | None = None
        while client in self._live:
            if without is None and server not in self._live and server.status():
                without = awake.slices(_WITHOUT_SERVER_SECONDS)
            try:
                self._next(without)
            except queue.Empty:
                self._end(client)
                self._fail_without(server, client)
        code = self._status(client)
        by_itself = self._await(server, awake.slices(_SERVER_SECONDS))
        if not by_itself:
            self._end(server)
        return code or (self._status(server) if by_itself else 0)

    def _start(
        self, guard: Guard, argv: Sequence[str], known: dict[str, str], *, stdin: bool = False
    ) -> Session:
        serves = argv is self._request.server

        def sinks(stream: Stream, name: Callable[[str], str]) -> list[Sink]:
            copies: list[Sink] = []
            if self._into is not None:
                copies.append(Kept(self._into / name("server" if serves else "client")))
            if self._attached and self._named:
                copies.append(Lines(stream, guard.node.name if self._request.prefix else ""))
            elif self._attached:
                copies.append(stream)
            return copies

        out, err = sinks(self._out, layout.output), sinks(self._err, layout.errors)
        if serves and self._request.ready.by == "line":
            needle = self._request.ready.line.encode(errors="surrogateescape")
            for each in (out, err):
                each.append(LookFor(needle, lambda: self._events.put(("ready", guard))))
        session = Session(
            guard,
            fill_in(argv, environment.in_words(known)),
            environment=known,
            out=out,
            err=err,
            stdin=_STDIN if stdin and self._attached else None,
            tty=self._request.tty,
            ended=lambda ended: self._events.put(("ended", ended)),
        )
        self._live.append(session)
        return session

    def _wait_until_ready(self, server: Session) -> None:
        """Wait until the server listens. Raises CommandError if it ends before, or does not."""
        condition = self._request.ready
        if condition.by == "delay":
            timer = threading.Timer(condition.seconds, self._events.put, [("ready", server)])
            timer.daemon = True  # the server may end first
            timer.start()
        watching = watch(condition, server.guard)
        if watching is not None:
            say = self._events.put

            def look() -> None:
                try:
                    watching.wait_for_line(SAYS, timeout=10**6)
                    say(("ready", server))
                except TestbedError:
                    say(("unready", server))

            threading.Thread(target=look, daemon=True).start()
        limit = None if self._limit else awake.slices(_LISTEN_SECONDS)
        silent = False
        try:
            while self._next(limit)[0] != "ready":
                if server not in self._live:
                    break
        except (queue.Empty, _TimeIsOverError):
            silent = True
        finally:
            if watching is not None:
                watching.kill()
        if silent:
            self._fail_silent(server)
        if server not in self._live:
            self._fail_early(server)

    def _next(self, limit: Iterator[float] | None = None) -> Event:
        """Return what happens next, after acting on it.

        Raises queue.Empty when `limit` is over, _TimeIsOverError when the request's is.
        """
        while True:
            lengths = [1.0]
            if self._limit is not None:
                lengths.append(next(self._limit, 0))
            if limit is not None:
                lengths.append(next(limit, 0))
            if limit is not None and not lengths[-1]:
                raise queue.Empty
            if not min(lengths):
                raise _TimeIsOverError
            with suppress(queue.Empty):
                event = self._events.get(timeout=min(lengths))
                break
        kind, who = event
        if kind == "ended" and isinstance(who, Session):
            self._live.remove(who)
        elif kind == "signal":
            self._pass_on(str(who))
        return event

    def _pass_on(self, name: str) -> None:
        self._signals += 1
        for session in self._live:
            session.send(name if self._signals < _ENOUGH else "KILL")

    def _await(self, session: Session, limit: Iterator[float]) -> bool:
        """Wait for a session's end; return whether it ended within the limit."""
        while session in self._live:
            try:
                self._next(limit)
            except queue.Empty:
                return False
        return True

    def _end(self, *sessions: Session) -> None:
        """End commands: by SIGTERM, and by SIGKILL if they do not mind it."""
        self._limit = None  # it is over, or the command has ended
        live = [session for session in sessions if session in self._live]
        for name, seconds in (("TERM", _TERM_SECONDS), ("KILL", _KILL_SECONDS)):
            for session in live:
                if session in self._live:
                    session.send(name)
            limit = awake.slices(seconds)
            if all(self._await(session, limit) for session in live):
                return
        for session in live:
            session.abandon()

    def _status(self, session: Session) -> int:
        code = session.status()
        not_started.check(session, code)
        return code

    def _fail_late(self) -> NoReturn:
        """Say what each command did when its time was over."""
        live = list(self._live)
        doing = {session: session.guard.state() for session in live}
        self._end(*live)
        raise CommandTimeoutError(
            f"{live[0].name} did not end within {self._request.seconds:g} s",
            cause="\n".join(_last(session, doing[session]) for session in live),
            action="Give it longer (--timeout, or a plan's timeout), or look what it waits for: "
            f"`{live[0].guard.node.login}`.",
        )

    def _fail_early(self, server: Session) -> NoReturn:
        code = self._status(server)
        ended = f"the server {server.name} ended with {status_text(code)}"
        raise CommandError(
            f"{ended} before it {self._request.ready.what}",
            cause=server.tail or "it printed nothing",
            action="Try it alone: `rocelab exec --on n2 -- …`.",
        )

    def _fail_silent(self, server: Session) -> NoReturn:
        doing = server.guard.state()
        self._end(server)
        raise CommandError(
            f"the server {server.name} never {self._request.ready.what}",
            cause=_last(server, doing),
            action="Say how to know that it is ready: --ready tcp:PORT, rdma_cm:PORT, line:TEXT or "
            "delay:SECONDS; give it longer with --timeout.",
        )

    def _fail_without(self, server: Session, client: Session) -> NoReturn:
        ended = f"the server {server.name} ended with {status_text(server.status())}"
        raise CommandError(
            f"{ended}, and its client did not end",
            cause=server.tail or "it printed nothing",
            action=f"Look why; {client.name} was ended {_WITHOUT_SERVER_SECONDS} s later.",
        )

    def _capture(self) -> AbstractContextManager[object]:
        path = self._request.capture
        return nullcontext() if path is None else self._testbed.capture(path)

    @contextmanager
    def _signals_passed(self) -> Iterator[None]:
        """Have signals to this process go to the commands."""

        def handle(number: int, frame: FrameType | None) -> None:
            del frame
            self._events.put(("signal", signal.Signals(number).name.removeprefix("SIG")))

        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in before.items():
            # nohup(1) has it ignored
            if handler is not signal.SIG_IGN:
                signal.signal(number, handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _took(guard: Guard) -> int:
    """How long a command ran (command.sh); 0 if the node does not say it."""
    times = guard.read("took").split()
    if len(times) != 2 or not all(time.isascii() and time.isdigit() for time in times):
        return 0
    began, ended = map(int, times)
    return max(0, ended - began)


@contextmanager
def _guarding(node: Node) -> Iterator[Guard]:
    with Guard(node) as guard:
        yield guard


def _last(session: Session, doing: str) -> str:
    """Say what a command did last."""
    name = session.guard.node.name
    lines = [f"{name}: {line}" for line in doing.splitlines()] or [f"{name}: no process is left"]
    tail = session.tail.splitlines()[-3:]
    lines += [f"{name} printed: {line}" for line in tail] or [f"{name} printed nothing"]
    return "\n".join(lines)
