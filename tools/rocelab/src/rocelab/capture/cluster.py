# SPDX-License-Identifier: GPL-2.0-or-later
"""Analyse captures on the workers of a Dask cluster.

Captures that are apart are a task each. Captures that are merged are one task, because packets
must be followed in the order of their times: the core of one worker joins connections by key and
PSN, and aligns clocks by packets that match.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocelab.capture.analysis import Options, analyze
from rocelab.errors import MissingError, UsageError

if TYPE_CHECKING:
    from distributed import Client, Future

_BLOCK = 16 << 20
"""Bytes of a file that are in memory on their way to another worker."""

Result = dict[str, Any]
"""The object of `--json`: what can leave the process of a worker."""


@dataclass(frozen=True)
class Source:
    """A capture as the workers find it."""

    name: str
    """As the user wrote it: the results name it so."""
    path: str
    """The absolute path, or a URL that fsspec reads."""
    holders: tuple[str, ...] = ()
    """Addresses of the workers that can open the path; of a URL, and if none can, empty."""

    @property
    def is_url(self) -> bool:
        """Whether fsspec reads it."""
        return "://" in self.name


@contextlib.contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """Connect to a scheduler.

    Raises MissingError if `distributed` is not installed, UsageError if nothing answers there.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingError(
            "--dask needs the Python package distributed",
            cause=str(error),
            action="Install it where rocelab is: `.venv/bin/pip install distributed`.",
        ) from error
    try:
        client = Client(scheduler, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {scheduler}",
            cause=str(error),
            action="Start one (`dask scheduler`), and give the address that it prints.",
        ) from error
    with client:
        yield client


def results(
    client: Client, names: Sequence[str], options: Options, *, merge: bool
) -> Iterator[Result | UsageError]:
    """Analyse captures, and yield what each gave, in the order of `names`; of a merge, one result.

    Raises MissingError if no worker can run the analysis.
    """
    sources = _located(client, names)
    groups = [sources] if merge else [[source] for source in sources]
    tasks = deque(_submitted(client, group, options) for group in groups)
    while tasks:
        # workers keep a result until nothing here refers to its task
        yield _answer(tasks.popleft())


def _answer(task: Future) -> Result | UsageError:
    from distributed import KilledWorker

    try:
        answer: Result | UsageError = task.result()
    except (ImportError, KilledWorker) as error:
        raise MissingError(
            "a Dask worker cannot analyze a capture",
            cause=str(error),
            action="Install this rocelab on every worker, and see the worker's log.",
        ) from error
    return answer


def _located(client: Client, names: Sequence[str]) -> list[Source]:
    """Ask every worker which of the captures it can open."""
    sources = [Source(name, name) for name in names]
    sources = [
        source if source.is_url else replace(source, path=str(Path(source.name).absolute()))
        for source in sources
    ]
    paths = ["" if source.is_url else source.path for source in sources]
    seen: dict[str, list[bool]] = client.run(_opens, paths)
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


def _submitted(client: Client, group: Sequence[Source], options: Options) -> Future:
    """Give a group to the workers that can open most of its files."""
    workers = sorted({holder for source in group for holder in source.holders})
    held = {worker: sum(worker in source.holders for source in group) for worker in workers}
    best = [worker for worker in workers if held[worker] == max(held.values())]
    # a file that has changed since must be read again, so no task may be taken for an earlier one
    return client.submit(_work, group, options, workers=best or None, pure=False)


def _work(group: Sequence[Source], options: Options) -> Result | UsageError:
    """Analyse a group as one capture. Runs on a worker."""
    names = [source.name for source in group]
    with tempfile.TemporaryDirectory(prefix="rocelab-") as folder:
        paths = [_here(source, Path(folder) / str(at)) for at, source in enumerate(group)]
        try:
            return analyze(paths, options, names=names).result
        except UsageError as error:
            return error


def _here(source: Source, copy: Path) -> str:
    """Return a path that this worker can open: the file's own, or that of a copy."""
    if source.is_url:
        import fsspec

        with fsspec.open(source.path, "rb") as remote, copy.open("wb") as local:
            while block := remote.read(_BLOCK):
                local.write(block)
        return str(copy)
    if not source.holders or Path(source.path).is_file():
        return source.path
    from distributed import worker_client

    with worker_client() as client, copy.open("wb") as local:
        while block := _fetched(client, source, local.tell()):
            local.write(block)
    return str(copy)


def _fetched(client: Client, source: Source, offset: int) -> bytes:
    task = client.submit(_block, source.path, offset, workers=list(source.holders), pure=False)
    block: bytes = task.result()
    return block


def _block(path: str, offset: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(offset)
        return file.read(_BLOCK)
