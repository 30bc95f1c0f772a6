# SPDX-License-Identifier: GPL-2.0-or-later
"""Images with more packages: which may be named, and a cache of bounded size."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rocelab.errors import MissingError, UsageError
from rocelab.testbed import artifacts, package_image
from rocelab.testbed.package_image import NONE, Packages


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rocelab" / "packages"


def deb(folder: Path, name: str, content: bytes = b"!<arch>") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_names_and_files_in_any_order(tmp_path: Path) -> None:
    """The same packages are the same image; a file counts by its content."""
    one, two = deb(tmp_path / "a", "mine.deb"), deb(tmp_path / "b", "mine.deb", b"other")
    said = Packages.parse(["ucx-utils", str(tmp_path / "a") + "/", "g++", "ucx-utils", str(one)])
    assert said == Packages.parse([str(one), "g++", "ucx-utils"])
    assert said.names == ("g++", "ucx-utils")
    assert said.labels[2].startswith("mine.deb ")
    assert said.labels[2] != Packages.parse([str(two)]).labels[0]
    assert not Packages.parse([])


@pytest.mark.parametrize(
    "word",
    [
        *("", "a", "-y", "--purge", "libc6-", "Perl", "a b", "a;id", "a$(id)", "a\n", "a*", "a^"),
        *("a=1", "a:i386", "a" * 101, "é", "./none.deb", "none.deb", "/dev/null", "/etc/"),
    ],
)
def test_what_is_no_package(word: str) -> None:
    """apt-get would take an option, a removal, a pattern or a task for one."""
    with pytest.raises(UsageError):
        Packages.parse([word])


def test_without_packages_it_is_the_image_of_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "image", lambda _: tmp_path)
    assert package_image.of_line("6.12", NONE, print) == tmp_path


def made(cache: Path, name: str, size: int, used: float) -> Path:
    path = cache / name
    path.mkdir(parents=True)
    (path / "image.json").write_text(json.dumps({"line": "6.12", "packages": [name]}))
    os.truncate(os.open(path / "root.sqfs", os.O_CREAT | os.O_WRONLY), size)
    os.utime(path, (used, used))
    return path


def test_the_cache_is_bounded(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest unused go when another is made; a torn folder is no image."""
    base = tmp_path / "base"
    base.mkdir()
    (base / "image.json").write_text('{"suite": "trixie"}')
    for name in ("vmlinuz", "initramfs.cpio"):
        (base / name).touch()

    def install(_: Path, work: Path) -> None:
        (work / "root.sqfs").write_bytes(b"r" * 4000)
        (work / "packages.tsv").touch()

    monkeypatch.setattr(artifacts, "image", lambda _: base)
    monkeypatch.setattr(package_image, "_install", install)
    monkeypatch.setattr(package_image, "MAX_BYTES", 10_000)
    older, newer = made(cache, "older", 5000, 1e9), made(cache, "newer", 5000, 2e9)
    (cache / "torn").mkdir()
    stale = cache / ".killed.new"
    stale.mkdir()
    os.utime(stale, (1e9, 1e9))
    assert [each.what for each in package_image.entries()] == [
        "kernel line 6.12 with newer",
        "kernel line 6.12 with older",
    ]
    packages = Packages(("ucx-utils",))
    path = package_image.of_line("6.12", packages, print)
    assert (older.exists(), newer.exists(), path.exists()) == (False, True, True)
    assert not stale.exists()
    assert artifacts.facts(path / "image.json")["packages"] == ["ucx-utils"]
    stamp = (path / "root.sqfs").stat().st_mtime_ns
    assert package_image.of_line("6.12", packages, print) == path
    assert (path / "root.sqfs").stat().st_mtime_ns == stamp
    assert package_image.clear()[0] == 2
    assert not cache.exists()


def test_what_fails_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "image.json").write_text("{}")
    for name in ("vmlinuz", "initramfs.cpio"):
        (base / name).touch()

    def install(_: Path, work: Path) -> None:
        (work / "root.sqfs").touch()
        raise MissingError("no")

    monkeypatch.setattr(artifacts, "image", lambda _: base)
    monkeypatch.setattr(package_image, "_install", install)
    with pytest.raises(MissingError):
        package_image.of_line("6.12", Packages(("ucx-utils",)), print)
    assert [path for path in cache.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("log", "kind", "says"),
    [
        (
            "E: hook\nrocelab: unknown nosuch\nE: more",
            UsageError,
            "no package nosuch in Debian trixie",
        ),
        ("E: Unmet\nrocelab: refused\nI: removing", UsageError, "cannot be installed"),
        ("E: Failed to fetch\nrocelab: no mirror\n", MissingError, "no package could"),
        ("", MissingError, "no package could"),
    ],
)
def test_what_apt_says(log: str, kind: type[Exception], says: str) -> None:
    error = package_image._failure("trixie", log)
    assert isinstance(error, kind)
    assert says in error.what
    assert "removing" not in error.cause
