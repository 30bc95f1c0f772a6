# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a user's command: there as they are here, and back without harm."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocelab.errors import CommandError, RocelabError, UsageError
from rocelab.measure.command import files
from rocelab.measure.command.files import Copied, Fetched, Files
from rocelab.measure.command.guard import Guard
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection

ODD = ("a b", "it's", "new\nline", "-rf", "$HOME", os.fsdecode(b"\xff"))


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guard]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    link = DataLink("lo", "127.0.0.1", "", 1500)
    with Guard(CommandNode("n1", link, LocalConnection(is_root=False))) as guarding:
        yield guarding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    made.mkdir()
    return made


def _send(what: Files, guard: Guard) -> Path:
    with files.pack(what, guard.ahead, {}) as archive:
        assert archive is not None
        files.send(archive, guard)
    return Path(guard.files)


def test_names_modes_and_links_are_as_here(guard: Guard, folder: Path) -> None:
    for name in ODD:
        (folder / "inner" / name).parent.mkdir(exist_ok=True)
        (folder / "inner" / name).write_bytes(name.encode(errors="surrogateescape"))
    (folder / "run").write_text("x")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("/etc/shadow")
    os.mkfifo(folder / "fifo")
    os.utime(folder / "run", (1e9, 1e9))
    there = _send(Files(folder), guard)
    assert sorted(path.name for path in (there / "inner").iterdir()) == sorted(ODD)
    assert stat.S_IMODE((there / "run").stat().st_mode) == 0o755
    assert abs((there / "run").stat().st_mtime - 1e9) < 5
    # a link is copied, not what it leads to; what is no file is left out
    assert (there / "link").readlink() == Path("/etc/shadow")
    assert not (there / "fifo").exists()


def test_what_changed_comes_back(guard: Guard, folder: Path) -> None:
    (folder / "same").write_text("same")
    (folder / "gone").write_text("stays here")
    (folder / "changed").write_text("old")
    what = Files(folder, writes_back=True)
    there = _send(what, guard)
    # files of the same moment have the same ctime
    os.utime(there.parent / "copied", ns=(0, (there / "same").stat().st_ctime_ns))
    (folder / "same").write_text("not overwritten")
    (there / "gone").unlink()
    (there / "changed").write_text("new")
    for name in ODD:
        (there / "deep" / "er" / name).parent.mkdir(parents=True, exist_ok=True)
        (there / "deep" / "er" / name).write_text(name.encode(errors="surrogateescape").hex())
    (there / "program").write_text("x")
    (there / "program").chmod(0o4755)
    (there / "link").symlink_to("/etc/shadow")
    files.fetch(what, guard)
    assert (folder / "same").read_text() == "not overwritten"
    assert (folder / "gone").read_text() == "stays here"
    assert (folder / "changed").read_text() == "new"
    assert sorted(path.name for path in (folder / "deep/er").iterdir()) == sorted(ODD)
    assert stat.S_IMODE((folder / "program").stat().st_mode) == 0o755
    assert not (folder / "link").is_symlink()


def test_single_files(guard: Guard, folder: Path) -> None:
    (folder / "one").write_text("1")
    (folder / "link").symlink_to("one")
    here = (Copied(folder / "one", "sub/two"), Copied(folder / "link", "three"))
    there = _send(Files(copied=here), guard)
    assert (there / "sub/two").read_text() == (there / "three").read_text() == "1"
    assert not (there / "three").is_symlink()
    (there / "result").write_text("42")
    files.fetch(Files(fetched=(Fetched("result", folder / "got"),)), guard)
    assert (folder / "got").read_text() == "42"
    with pytest.raises(RocelabError, match="missing"):
        files.fetch(Files(fetched=(Fetched("missing", folder / "no"),)), guard)
    assert sorted(path.name for path in folder.iterdir()) == ["got", "link", "one"]


def test_a_file_that_does_not_end(
    guard: Guard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MAX_BACK", 1 << 20)
    with pytest.raises(OSError, match="more than 1 MiB"):
        files.fetch(Files(fetched=(Fetched("/dev/zero", folder / "got"),)), guard)
    assert list(folder.iterdir()) == []


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, to: str = ""
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, to
    return member


@pytest.mark.parametrize(
    "members",
    [
        [_member("../out")],
        [_member("/tmp/out")],
        [_member("a/../../out")],
        [_member(".")],
        [_member("x", tarfile.SYMTYPE, to="/etc"), _member("x/passwd")],
        [_member("x", tarfile.LNKTYPE, to="/etc/passwd")],
        [_member("x", tarfile.FIFOTYPE)],
        [_member("x", tarfile.BLKTYPE)],
        [_member(f"d{n}", tarfile.DIRTYPE) for n in range(200)],
        [_member("big", size=2 << 20)],
    ],
    ids=lambda members: members[0].name,
)
def test_a_hostile_archive(
    members: list[tarfile.TarInfo], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written outside the folder, and not too much in it."""
    monkeypatch.setattr(files, "_MAX_BACK", 1 << 20)
    monkeypatch.setattr(files, "_MAX_ENTRIES", 100)
    archive = tmp_path / "back.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(CommandError, match="is refused"):
        files.unpack(archive, folder, "n1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back.tgz", "mine"]
    assert all(path.is_dir() for path in folder.iterdir())


def test_no_archive(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "back.tgz").write_bytes(b"\x1f\x8b nonsense")
    with pytest.raises(CommandError, match="is refused"):
        files.unpack(tmp_path / "back.tgz", folder, "n1")


def test_a_link_in_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (folder / "sub").symlink_to(tmp_path / "other")
    (folder / "file").symlink_to(tmp_path / "other/file")
    archive = tmp_path / "back.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(_member("file"))
        tar.addfile(_member("sub/file"))
    with pytest.raises(RocelabError, match="symbolic link"):
        files.unpack(archive, folder, "n1")
    assert list((tmp_path / "other").iterdir()) == []
    assert not (folder / "file").is_symlink()


def test_what_is_too_much_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").write_bytes(bytes(1000))
    assert files.fits(folder, 1000)
    assert not files.fits(folder, 999)
    monkeypatch.setattr(files, "MUCH", 999)
    with pytest.raises(UsageError, match="too large"), files.pack(Files(folder), 0, {}):
        pass
    with pytest.raises(UsageError, match="too large"):
        files.check(folder)
    monkeypatch.setattr(files, "_MAX_ENTRIES", 0)
    assert not files.fits(folder, 1000)


def test_what_goes_without_a_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing private, nothing of the system, nothing large."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.may_go_unnamed(folder)
    for path in (folder, folder / "inner"):
        monkeypatch.setenv("HOME", str(path))
        assert not files.may_go_unnamed(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    for system in ("/", "/etc", "/tmp"):
        assert not files.may_go_unnamed(Path(system))
    (folder / "large").write_bytes(b"")
    os.truncate(folder / "large", files.LITTLE + 1)
    assert not files.may_go_unnamed(folder)


def test_what_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "secret").touch()
    # root may read everything
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not files.may_go_unnamed(folder)
    with pytest.raises(UsageError, match="Permission denied"):
        files.pack(Files(folder), 0, {}).__enter__()


def test_values_of_options(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("f", "a:b"):
        Path(name).touch()
    assert files.parse_copy("f") == Copied(Path("f"), "f")
    assert files.parse_copy("f:x/y") == Copied(Path("f"), "x/y")
    assert files.parse_copy("a:b") == Copied(Path("a:b"), "a:b")
    assert files.parse_copy("a:b:c") == Copied(Path("a:b"), "c")
    assert files.parse_get("/tmp/x") == Fetched("/tmp/x", Path("x"))
    Path("y").mkdir()
    assert files.parse_get("x:y/z") == Fetched("x", Path("y/z"))
    for text in ("missing", "f:/etc/x", "f:../x", "f:", "."):
        with pytest.raises(UsageError):
            files.parse_copy(text)
    for text in ("", ":x", "x:", "/", "x:y", "x:missing/z", "x:/dev/null", "x:f/z"):
        with pytest.raises(UsageError):
            files.parse_get(text)
