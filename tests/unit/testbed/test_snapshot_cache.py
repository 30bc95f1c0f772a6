# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache of saved machines: whole or absent, private, bounded, and nobody else's."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from polling import wait_until
from rocelab.errors import MissingError
from rocelab.testbed.qemu import snapshot_cache

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rocelab" / "snapshots"


def of(content: bytes) -> Callable[[IO[bytes]], None]:
    """Return what writes that stream, as a machine is saved."""

    def feed(writer: int) -> None:
        with os.fdopen(writer, "wb") as stream:
            stream.write(content)

    def save(file: IO[bytes]) -> None:
        reader, writer = os.pipe()
        threading.Thread(target=feed, args=(writer,)).start()
        with snapshot_cache.compressor(reader, file) as compressor:
            os.close(reader)
        assert compressor.returncode == 0

    return save


def read(path: Path) -> subprocess.CompletedProcess[bytes]:
    with path.open("rb") as file:
        return subprocess.run(
            snapshot_cache.DECOMPRESS, stdin=file, capture_output=True, check=False
        )


def test_a_snapshot_is_read_as_it_was_written(cache: Path) -> None:
    assert snapshot_cache.find(KEY) is None
    snapshot_cache.write(KEY, "n1, with a driver", of(b"memory" * 1000))
    snapshot = snapshot_cache.find(KEY)
    assert snapshot is not None
    assert (snapshot.what, snapshot.size) == ("n1, with a driver", snapshot.path.stat().st_size)
    assert read(snapshot.path).stdout == b"memory" * 1000
    assert cache.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in cache.iterdir()] == [f"{KEY}.zst"]


@pytest.mark.parametrize("cut", [1, 4, 8, 100])
def test_a_torn_snapshot_is_known_when_it_was_read(cut: int) -> None:
    snapshot_cache.write(KEY, "n1", of(os.urandom(100_000)))
    snapshot = snapshot_cache.find(KEY)
    assert snapshot is not None
    os.truncate(snapshot.path, snapshot.size - cut)
    assert read(snapshot.path).returncode != 0


def test_a_corrupt_snapshot_is_known_when_it_was_read() -> None:
    snapshot_cache.write(KEY, "n1", of(os.urandom(100_000)))
    snapshot = snapshot_cache.find(KEY)
    assert snapshot is not None
    content = bytearray(snapshot.path.read_bytes())
    content[len(content) // 2] ^= 1
    snapshot.path.write_bytes(content)
    assert read(snapshot.path).returncode != 0


def damaged(kind: str, path: Path) -> None:
    match kind:
        case "empty":
            path.write_bytes(b"")
        case "no snapshot":
            path.write_bytes(b"x" * 100)
        case "head torn":
            path.write_bytes(path.read_bytes()[:20])
        case "another machine's":
            snapshot_cache.write(OTHER, "n2", of(b"y"))
            path.write_bytes((path.parent / f"{OTHER}.zst").read_bytes())
        case "another schema":
            path.write_bytes(
                path.read_bytes().replace(b"rocelab.snapshot/1", b"rocelab.snapshot/0")
            )
        case "writable by others":
            path.chmod(0o666)
        case "a link":
            path.rename(path.with_name("elsewhere"))
            path.symlink_to(path.with_name("elsewhere"))
        case "a folder":
            path.unlink()
            path.mkdir()


@pytest.mark.parametrize(
    "kind",
    [
        *("empty", "no snapshot", "head torn", "another machine's", "another schema"),
        *("writable by others", "a link", "a folder"),
    ],
)
def test_what_is_not_ours_is_not_used(kind: str, cache: Path) -> None:
    snapshot_cache.write(KEY, "n1", of(b"x"))
    damaged(kind, cache / f"{KEY}.zst")
    assert snapshot_cache.find(KEY) is None
    assert KEY not in [each.key for each in snapshot_cache.entries()]


def test_a_failed_or_killed_writer_leaves_no_snapshot(cache: Path) -> None:
    def fail(file: IO[bytes]) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshot_cache.write(KEY, "n1", fail)
    assert list(cache.iterdir()) == []
    assert snapshot_cache.find(KEY) is None


def test_the_longest_unused_go_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"{number:064x}" for number in range(4)]
    for age, key in enumerate(keys):
        snapshot_cache.write(key, key, of(os.urandom(50_000)))
        path = snapshot_cache.folder() / f"{key}.zst"
        os.utime(path, (time.time() - 1000 + age,) * 2)
    # reading one makes it young
    assert snapshot_cache.find(keys[0])
    monkeypatch.setattr(snapshot_cache, "MAX_BYTES", 160_000)
    snapshot_cache.write(KEY, "new", of(os.urandom(50_000)))
    assert {each.key for each in snapshot_cache.entries()} == {KEY, keys[0], keys[3]}


def test_what_a_killed_writer_left_goes_when_it_is_old(cache: Path) -> None:
    snapshot_cache.write(KEY, "n1", of(b"x"))
    old, young = cache / f".{KEY}.zst.0.part", cache / f".{KEY}.zst.1.part"
    for part in (old, young):
        part.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    snapshot_cache.write(OTHER, "n2", of(b"x"))
    assert (old.exists(), young.exists()) == (False, True)


def test_a_folder_of_others_is_refused(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(MissingError, match="not a private folder"):
        snapshot_cache.write(KEY, "n1", of(b"x"))


def test_the_second_writer_waits_for_the_first(cache: Path) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        with snapshot_cache.only_writer(KEY, waiting.set):
            order.append("second")

    with snapshot_cache.only_writer(KEY, waiting.set):
        assert not waiting.is_set()
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert list(cache.iterdir()) == []


def test_clear_removes_all_and_says_how_much(cache: Path) -> None:
    snapshot_cache.write(KEY, "n1", of(b"x"))
    (cache / ".left.0123456789abcdef.part").write_bytes(b"123")
    count, size = snapshot_cache.clear()
    assert count == 1
    assert size > 3
    wait_until("nothing left", lambda: list(cache.iterdir()) == [])
