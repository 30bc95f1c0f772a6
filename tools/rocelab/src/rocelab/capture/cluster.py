# SPDX-License-Identifier: GPL-2.0-or-later
"""Analyse captures on the workers of a Dask cluster.

Captures that are apart are a task each. Captures that are merged are verified where they are, and
each leaves an excerpt there: its packets without their payloads. Then one worker takes the
excerpts and follows the packets of all captures in the order of their times: it joins connections
by key and PSN, and aligns clocks by packets that match.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rocelab._core import write_excerpt
from rocelab.capture.analysis import Options, analyze, unreadable
from rocelab.conditions import lack
from rocelab.directory import temporary_folder
from rocelab.errors import MissingError, RocelabError, UsageError

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

_BLOCK = 16 << 20
"""Bytes of a file that go to another worker at a time."""

_BLOCKS = 4
"""So many blocks of a file are on their way."""

_TASKS_PER_THREAD = 6
"""Enough that no worker waits for long while another has its last task."""

_LOOK_SECONDS = 2
"""Between two looks at whether the workers are there that a task waits for."""

_CLOSE_SECONDS = 5
"""The client waits so long for a scheduler that may be gone."""

Result = dict[str, Any]
"""The object of `--json`: what can leave the process of a worker."""


@dataclass(frozen=True)
class Source:
    """A capture as the workers find it."""

    name: str
    """As the user wrote it: the results name it so."""
    path: str
    """The absolute path, or a URL that fsspec reads."""
    number: int
    """Its place among the captures."""
    holders: tuple[str, ...] = ()
    """Addresses of the workers that can open the path; of a URL, and if none can, empty."""

    @property
    def is_url(self) -> bool:
        """Whether fsspec reads it."""
        return "://" in self.name


@contextlib.contextmanager
def connect(scheduler: str) -> Iterator[Client]:
    """Connect to a scheduler.

    Raises MissingError if `distributed` is not installed, UsageError if nothing answers there,
    RocelabError if a connection is lost later.
    """
    try:
        from distributed import CancelledError, Client
        from distributed.client import ClosedClientError
        from distributed.comm import connect as connect_comm
        from distributed.security import Security
    except ImportError as error:
        raise MissingError(
            "--dask needs the Python package distributed",
            cause=str(error),
            action="Install it where rocelab is: `.venv/bin/pip install distributed`.",
        ) from error

    async def greet() -> None:
        comm = await connect_comm(scheduler, **Security().get_connection_args("client"))
        await comm.close()

    try:
        # a client that fails for another reason than OSError tries for a minute to close itself
        asyncio.run(greet())
        client = Client(scheduler, set_as_default=False)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {scheduler}",
            cause=str(error),
            action="Start one (`dask scheduler`), and give the address that it prints.",
        ) from error
    # the error below replaces what it logs of a lost connection, with tracebacks
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        yield client
    except (CancelledError, ClosedClientError, OSError) as error:
        # only those of the system, such as a full disk's, have a number
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RocelabError(
            f"a connection of the Dask cluster at {scheduler} is lost",
            cause="the scheduler or a worker has ended, or the network fails",
            action="Look at their logs, start what has ended, and give the command again.",
        ) from error
    finally:
        # nothing is lost where this fails: a scheduler forgets a client that is gone
        with contextlib.suppress(OSError):
            client.close(timeout=_CLOSE_SECONDS)


def results(
    client: Client, names: Sequence[str], options: Options, *, merge: bool
) -> Iterator[Result | UsageError]:
    """Analyse captures, and yield what each gave, in the order of `names`; of a merge, one result.

    Raises MissingError if no worker can run the analysis.
    """
    sources = _locate(client, names)
    if merge and len(sources) > 1:
        yield _analyze_as_one(client, sources, options)
        return
    for answer in _answers(client, sources, _analyze_on_worker, options):
        yield cast("Result | UsageError", answer)


def _analyze_as_one(
    client: Client, sources: Sequence[Source], options: Options
) -> Result | UsageError:
    """Analyse captures as one."""
    run = f"rocelab-{secrets.token_hex(8)}"
    rest = (options.ports, options.icrc, len(sources), run)
    names = [source.name for source in sources]
    try:
        excerpts: list[Excerpt] = []
        for answer in _answers(client, sources, _excerpt_on_worker, *rest):
            excerpt = cast("Excerpt | OSError | UsageError", answer)
            if isinstance(excerpt, UsageError):
                return excerpt
            if isinstance(excerpt, OSError):
                raise unreadable(names, excerpt) from excerpt
            excerpts.append(excerpt)
        most = _most_bytes(excerpts)
        follow = client.submit(
            _follow_on_worker, excerpts, names, options, run, workers=[most], pure=False
        )
        return cast("Result | UsageError", _answer(client, follow, [most]))
    finally:
        # without a scheduler nobody reaches the workers, which remove their folders when they end
        if client.status == "running":
            client.run(_forgotten, run, on_error="ignore")


def _most_bytes(excerpts: Sequence[Excerpt]) -> str:
    """The worker with the most bytes of excerpts."""
    sizes: Counter[str] = Counter()
    for excerpt in excerpts:
        sizes[excerpt.worker] += excerpt.size
    return sizes.most_common(1)[0][0]


def _answer(client: Client, task: Future, holders: Sequence[str]) -> object:
    """Wait for what a task returns. Only `holders` can do it; if there are none, any worker.

    Raises RocelabError if these workers have ended and do not come back.
    """
    from distributed import KilledWorker

    _wait(client, task, holders)
    try:
        return cast("object", task.result())
    except (ImportError, KilledWorker) as error:
        raise _unfit_worker(error) from error


def _wait(client: Client, task: Future, holders: Sequence[str]) -> None:
    """Wait until a task has ended: Dask leaves one waiting for a worker that is gone.

    A worker may come back within the time that Dask gives a connection.
    """
    import dask.config
    from dask.utils import parse_timedelta
    from distributed import wait

    grace = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
    seen = time.monotonic()
    while True:
        with client.as_current(), contextlib.suppress(TimeoutError):
            wait(task, timeout=_LOOK_SECONDS)
            return
        workers = client.nthreads()
        if any(holder in workers for holder in holders or workers):
            seen = time.monotonic()
        elif time.monotonic() - seen > grace:
            raise RocelabError(
                "a Dask worker has ended before its work",
                cause=f"the scheduler has lost {' and '.join(holders) or 'every worker'}",
                action="See the worker's log, start it, and give the command again.",
            )


def _unfit_worker(error: Exception) -> MissingError:
    return MissingError(
        "a Dask worker cannot analyze a capture",
        cause=str(error),
        action="Install this rocelab on every worker, and see the worker's log.",
    )


def _locate(client: Client, names: Sequence[str]) -> list[Source]:
    """Ask every worker which of the captures it can open.

    Raises MissingError if there is no worker, or one has no rocelab.
    """
    sources = [
        Source(name, name if "://" in name else str(Path(name).absolute()), number)
        for number, name in enumerate(names)
    ]
    paths = ["" if source.is_url else source.path for source in sources]
    seen: dict[str, list[bool]] = {}
    for worker, answer in client.run(_opens, paths, on_error="return").items():
        if isinstance(answer, Exception):
            raise _unfit_worker(answer) from answer
        seen[worker] = answer
    if not seen:
        raise MissingError(
            "the Dask scheduler has no workers",
            cause="none is started, or none has connected yet",
            action="Start some: `dask worker SCHEDULER`.",
        )
    return [
        replace(source, holders=tuple(sorted(worker for worker in seen if seen[worker][index])))
        for index, source in enumerate(sources)
    ]


def _opens(paths: Sequence[str]) -> list[bool]:
    return [Path(path).is_file() for path in paths]


def _answers(
    client: Client, sources: Sequence[Source], work: Callable[..., object], *words: object
) -> Iterator[object]:
    """Let workers do `work` on each capture; yield what it returns, in their order.

    A capture goes to a worker that can open it; if none can, to one that says why.
    """
    tasks = deque(
        (
            # a file that has changed must be read again, so no task may be taken for an earlier one
            client.submit(
                _each, work, part, *words, workers=list(part[0].holders) or None, pure=False
            ),
            part[0].holders,
        )
        for part in _parts(sources, sum(client.nthreads().values()))
    )
    while tasks:
        # workers keep a result until nothing here refers to its task
        yield from cast("list[object]", _answer(client, *tasks.popleft()))


def _parts(sources: Sequence[Source], threads: int) -> Iterator[list[Source]]:
    """Captures that the same workers can open, a few to a task: a task costs some milliseconds."""
    most = max(1, len(sources) // (_TASKS_PER_THREAD * max(1, threads)))
    for _, group in groupby(sources, key=lambda source: source.holders):
        while part := list(islice(group, most)):
            yield part


def _each(work: Callable[..., object], sources: Sequence[Source], *words: object) -> list[object]:
    """Do `work` on captures. Runs on a worker."""
    return [work(source, *words) for source in sources]


def _analyze_on_worker(source: Source, options: Options) -> Result | UsageError:
    """Analyse a capture. Runs on a worker."""
    from distributed import get_worker

    with temporary_folder(dir=Path(get_worker().local_directory)) as folder:
        try:
            path = _local(source, Path(folder))
            return analyze([path], options, names=[source.name]).result
        except UsageError as error:
            return error


def _local(source: Source, folder: Path) -> str:
    """Return a path that this worker can open: that of the file, or of a copy in `folder`.

    Raises UsageError if a URL cannot be read, ImportError if this worker lacks what reads it, and
    MissingError if its machine lacks something, such as room for the copy.
    """
    if not source.is_url:
        return source.path
    import fsspec

    copy = folder / "capture"
    try:
        with fsspec.open(source.path, "rb") as remote, copy.open("wb") as local:
            shutil.copyfileobj(remote, local, _BLOCK)
    except ImportError:
        raise
    except Exception as error:
        # the library of each protocol raises its own errors
        raise lack(error, f"a worker cannot copy {source.name}") or UsageError(
            f"cannot read {source.name}",
            cause=f"a worker got {type(error).__name__}: {error!s:.200}",
            action="Check the URL, and that the workers may and can read it.",
        ) from error
    return str(copy)


@dataclass(frozen=True)
class Excerpt:
    """What a worker has left of a capture."""

    worker: str
    """The worker's address."""
    path: str
    """Where it is there."""
    size: int
    """Bytes."""


def _excerpt_on_worker(
    source: Source, ports: Sequence[int], icrc: bool, captures: int, run: str
) -> Excerpt | OSError | UsageError:
    """Verify a capture and write its excerpt. Runs on a worker."""
    from distributed import get_worker

    worker = get_worker()
    path = _folder(worker, run) / f"{source.number}"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with temporary_folder(dir=path.parent) as folder:
        try:
            local = _local(source, Path(folder))
            write_excerpt(local, path, ports=list(ports), icrc=icrc, captures=captures)
        except (OSError, UsageError) as error:
            return error
    return Excerpt(worker.address, str(path), path.stat().st_size)


def _folder(worker: Worker, run: str) -> Path:
    """The folder of a run on a worker: in Dask's own, which goes with the worker."""
    return Path(worker.local_directory) / run


def _forgotten(run: str, dask_worker: Worker) -> None:
    """Remove what a run has left on a worker. Dask gives the worker by the parameter's name."""
    shutil.rmtree(_folder(dask_worker, run), ignore_errors=True)


def _follow_on_worker(
    excerpts: Sequence[Excerpt], names: Sequence[str], options: Options, run: str
) -> Result | UsageError:
    """Follow the packets of all captures. Runs on a worker."""
    from distributed import get_worker

    folder = _folder(get_worker(), run)
    paths = [
        excerpt.path if _is_here(excerpt) else _fetch(excerpt, folder / f"copy-{at}")
        for at, excerpt in enumerate(excerpts)
    ]
    try:
        return analyze(paths, options, names=names, excerpts=True).result
    except UsageError as error:
        return error


def _is_here(excerpt: Excerpt) -> bool:
    """Whether this worker can open an excerpt; nothing else has a path with the run's name."""
    return Path(excerpt.path).is_file()


def _fetch(excerpt: Excerpt, copy: Path) -> str:
    """Copy an excerpt from the worker that has it; return the path of the copy."""
    from distributed import worker_client

    offsets = iter(range(0, excerpt.size, _BLOCK))
    with worker_client() as client, copy.open("wb") as local:

        def ask(offset: int) -> Future:
            return client.submit(_block, excerpt.path, offset, workers=[excerpt.worker], pure=False)

        tasks = deque(ask(offset) for offset in islice(offsets, _BLOCKS))
        while tasks:
            local.write(cast("bytes", _answer(client, tasks.popleft(), [excerpt.worker])))
            tasks.extend(ask(offset) for offset in islice(offsets, 1))
    return str(copy)


def _block(path: str, offset: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(offset)
        return file.read(_BLOCK)
