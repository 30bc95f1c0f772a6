# SPDX-License-Identifier: GPL-2.0-or-later
"""Each place that opens a file says what this machine lacks."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from corpus import CAPTURES
from requirements import missing
from rocelab import capture, conditions, correlate
from rocelab.capture import cluster
from rocelab.capture.ring import Ring
from rocelab.errors import MissingError, UsageError
from rocelab.record import drivers_folder, folded_stacks, frames, layout, results_table
from rocelab.record.folder import RunFolder
from rocelab.testbed import artifacts, changed_driver
from rocelab.wireshark import install
from rocelab.wireshark.folders import Folders

_CAPTURE = CAPTURES / "testbed-write-lat-64.pcap"
_TRACE = CAPTURES / "testbed-rxedump-write-lat-64.pcapng"


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """Let nothing be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _part_of_a_ring(folder: Path) -> Callable[[], object]:
    """It was seen, and is then to be read."""
    for name in ("ring1", "ring2"):
        (folder / name).write_bytes((CAPTURES / "ack-unsent.pcap").read_bytes())
    ring = Ring(str(folder))
    part = ring.new_parts()[0]

    def read() -> None:
        with ring.open_part(part):
            pass

    return read


def _file(folder: Path) -> Path:
    file = folder / "file"
    file.write_text("{}")
    return file


def _run_folder(folder: Path) -> RunFolder:
    (folder / layout.RUN).write_text("{}")
    return RunFolder(folder)


def _copy_of_a_url(folder: Path) -> Callable[[], object]:
    """What a Dask worker does first with a capture that it gets by URL."""
    if not find_spec("fsspec"):
        missing("the Python package fsspec is not installed")
    source = cluster.Source(_CAPTURE.as_uri(), _CAPTURE.as_uri(), 0)
    cluster._local(source, folder)
    return partial(cluster._local, source, folder)


def _installed_files(folder: Path) -> Callable[[], object]:
    (folder / install._RECORD).write_text("{}")
    return partial(install.install, Folders(folder, folder, folder))


PLACES: dict[str, Callable[[Path], Callable[[], object]]] = {
    "capture": lambda _: partial(capture.analyze, [str(_CAPTURE)]),
    "packets": lambda _: partial(capture.read, str(_CAPTURE)),
    "joined": lambda _: partial(correlate.join, _CAPTURE, [_TRACE]),
    "copy of a URL": _copy_of_a_url,
    "frames": lambda _: partial(frames.count, _CAPTURE),
    "installed files": _installed_files,
    "ring": lambda folder: partial(Ring, str(folder)),
    "part of a ring": _part_of_a_ring,
    "patch": lambda folder: partial(changed_driver._read, _file(folder)),
    "facts": lambda folder: partial(artifacts.facts, _file(folder)),
    "cells": lambda folder: _run_folder(folder).cell_names,
    "run": lambda folder: _run_folder(folder).meta,
    "cell": lambda folder: partial(_run_folder(folder).record, "cell"),
    "comparison": lambda folder: partial(drivers_folder.write, folder, "ab", {}, ""),
    "traced captures": lambda folder: partial(correlate.find, _run_folder(folder).path),
    "stacks": lambda folder: partial(folded_stacks.load, _run_folder(folder), ["cell"]),
    "results": lambda folder: partial(results_table.load, _run_folder(folder).path),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_descriptors(place: str, tmp_path: Path) -> None:
    do = PLACES[place](tmp_path)
    # modules that are imported late, and files that are in order, are not what fails
    with contextlib.suppress(UsageError):
        do()
    with no_descriptors(), pytest.raises(MissingError, match="Too many open files") as caught:
        do()
    assert "the limit is low" in caught.value.cause
    assert "ulimit -n" in caught.value.action


@pytest.mark.parametrize(
    "use",
    [
        lambda path: Ring(str(path)),
        changed_driver._read,
        lambda path: artifacts._existing(path, "image"),
        lambda path: RunFolder(path).cell_names(),
    ],
    ids=["ring", "patch", "artifact", "cells"],
)
def test_links_in_a_circle(use: Callable[[Path], object], tmp_path: Path) -> None:
    """The cause is the one that the system tells; the advice is the place's."""
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(UsageError, match="Too many levels of symbolic links") as caught:
        use(circle)
    assert caught.value.cause == "symbolic links lead in a circle"
    assert caught.value.action not in ("", conditions._ELSEWHERE)
