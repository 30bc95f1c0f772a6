# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/kernel-source/watch_kernels.py: what it reads, and what it calls news. No network."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from script_module import load

pools = load("tools/kernel-source/debian_pools.py")
seen = load("tools/kernel-source/seen_kernels.py")
mainline = load("tools/kernel-source/mainline.py")
watch = load("tools/kernel-source/watch_kernels.py")
build = load("tools/kernel-source/driver_build.py")

RXE = "drivers/infiniband/sw/rxe"
SHOWN = """\
Package: linux-headers-6.12.118+deb13-amd64
Source: linux
Version: 6.12.118-1
Depends: linux-headers-6.12.118+deb13-common (= 6.12.118-1), linux-image-6.12.118+deb13-amd64
Description: Header files for Linux 6.12.118+deb13-amd64
 This package provides the architecture-specific kernel header files.

Package: linux-headers-6.12-amd64
Version: 6.12.118-1
Depends: linux-headers-6.12.118+deb13-amd64 (= 6.12.118-1)

Package: linux-source-6.12
Version: 6.12.118-1

Package: linux-source-6.12
Version: 6.12.9-1

Package: linux-headers-7.3-amd64
Version: 7.3~rc7-1~exp1
Depends: linux-headers-7.3-common (= 7.3~rc7-1~exp1)

Package: linux-source-7.3
Version: 7.3~rc7-1~exp1
"""
CHANGELOG = """\
linux (6.12.118-1) trixie-security; urgency=high

  * New upstream stable update:
    https://www.kernel.org/pub/linux/kernel/v6.x/ChangeLog-6.12.118
    - IB/mlx5: Not ours
    - RDMA/rxe: Fix a use-after-free
      of an MR (CVE-2026-1)
    - RDMA/core: Also not ours

  [ A Person ]
  * rxe: refresh a patch

 -- A Person <a@example.org>  Thu, 26 Nov 2026 18:12:56 +0100

linux (6.12.117-1) trixie-security; urgency=high

  * New upstream stable update:
    - RDMA/rxe: Known before

 -- A Person <a@example.org>  Thu, 19 Nov 2026 18:12:56 +0100
"""


def test_kernels_of_the_lists() -> None:
    """Headers belong to the source of their version; a metapackage is no kernel."""
    kernels = pools.kernels(pools.stanzas(SHOWN))
    assert [(each.package, each.version, each.releases) for each in kernels] == [
        ("linux-source-6.12", "6.12.9-1", ()),
        ("linux-source-6.12", "6.12.118-1", ("6.12.118+deb13-amd64",)),
        ("linux-source-7.3", "7.3~rc7-1~exp1", ("7.3-amd64",)),
    ]


def test_flavours_are_left_out() -> None:
    """The flavours cloud and rt have the same driver."""
    text = SHOWN.replace("deb13-amd64", "deb13-rt-amd64").replace("7.3-amd64", "7.3-cloud-amd64")
    assert {each.releases for each in pools.kernels(pools.stanzas(text))} == {()}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("6.12.9-1", "6.12.118-1"),
        ("6.12.117-1~deb12u1", "6.12.117-1"),
        ("7.3~rc7-1~exp1", "7.3.4-1~bpo13+1"),
        ("7.2.13-1", "7.3~rc7-1~exp1"),
        ("6.1.192-2", "6.1.192-3"),
    ],
)
def test_order_of_versions(older: str, newer: str) -> None:
    """As dpkg has it."""
    assert pools.in_order(older) < pools.in_order(newer)
    subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=True)


def test_changes_of_the_changelog() -> None:
    """What is newer and names rxe, on one line each; an older one need not be in the file."""
    ours = ["RDMA/rxe: Fix a use-after-free of an MR (CVE-2026-1)", "rxe: refresh a patch"]
    assert pools.changes(CHANGELOG, "6.12.117-1") == ours
    assert pools.changes(CHANGELOG, "6.12.117-2") == ours
    assert pools.changes(CHANGELOG, "6.12.116-1") == [*ours, "RDMA/rxe: Known before"]
    assert pools.changes(CHANGELOG, "6.12.118-1") == []


@pytest.mark.parametrize(
    ("version", "line"),
    [("6.1.192-3", "6.1"), ("6.12.118-1", "6.12"), ("7.3~rc7-1~exp1", "7.x"), ("6.19.2-1", "none")],
)
def test_line_of_a_version(version: str, line: str) -> None:
    """A separate line, or that of all versions with its first number."""
    assert seen.line_of(version, watch.LINES) == line


def row(version: str, refused: str = "", package: str = "linux-source-6.12") -> Any:
    """Make a row of the table."""
    return seen.Seen(package, version, "6.12", "0123456789abcdef", refused, "")


def test_what_is_news() -> None:
    """A kernel that is known to be refused is none; one that fitted before is."""
    before = [row("1"), row("2"), row("3", "0002")]
    now = [row("1"), row("2", "0007"), row("3", "0002"), row("4"), row("5", "0001")]
    fresh, broken = seen.news(before, now)
    assert [each.version for each in fresh] == ["4", "5"]
    assert [each.version for each in broken] == ["2", "5"]


def test_table_survives(tmp_path: Path) -> None:
    """What is written is read again, below its licence."""
    rows = [row("1"), row("2", "0002")]
    seen.write(tmp_path / "seen.csv", rows)
    assert seen.read(tmp_path / "seen.csv") == rows
    assert (tmp_path / "seen.csv").read_text().startswith(seen.HEADER)


def test_table_of_the_checkout() -> None:
    """It has every line, and a kernel of each that fits."""
    rows = seen.read(watch.SEEN)
    assert {each.line for each in rows if not each.refused} == set(watch.LINES)


def test_hash_of_a_driver(tmp_path: Path) -> None:
    """A change of a file, or of its name, changes it."""
    (tmp_path / "a.c").write_text("int a;\n")
    first = seen.digest(tmp_path)
    (tmp_path / "a.c").rename(tmp_path / "b.c")
    second = seen.digest(tmp_path)
    (tmp_path / "b.c").write_text("int b;\n")
    assert len({first, second, seen.digest(tmp_path)}) == 3


def test_a_source_that_is_refused_names_the_patch(tmp_path: Path) -> None:
    """A driver without any of the files refuses the first patch."""
    (tmp_path / RXE).mkdir(parents=True)
    (tmp_path / RXE / "rxe_net.c").write_text("int other;\n")
    assert watch.first_refused_patch(tmp_path, "7.x", "9.9") == "0001"


def commit(tree: Path, title: str, **files: str) -> str:
    """Commit files of rxe, and a Makefile."""
    (tree / RXE).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (tree / RXE / f"{name}.c").write_text(text)
    makefile = "VERSION = 7\nPATCHLEVEL = 4\nSUBLEVEL = 0\nEXTRAVERSION = -rc2\nNAME = Fish\n"
    (tree / "Makefile").write_text(makefile)
    (tree / "kernel.c").write_text(title)
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    mainline.git(tree, "add", "-A")
    mainline.git(tree, *author, "commit", "-q", "-m", title)
    head: str = mainline.git(tree, "rev-parse", "HEAD").strip()
    return head


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """Return a repository that can be fetched in part."""
    tree = tmp_path / "server"
    tree.mkdir()
    mainline.git(tree, "init", "-q")
    mainline.git(tree, "config", "uploadpack.allowFilter", "true")
    mainline.git(tree, "config", "uploadpack.allowAnySHA1InWant", "true")
    commit(tree, "RDMA/rxe: First", rxe_net="int a;\n")
    return tree


@pytest.mark.slow
def test_mainline(server: Path, tmp_path: Path) -> None:
    """Its driver alone is fetched, and the commits to it since the last look are named."""
    url = f"file://{server}"
    first = mainline.fetch(url, tmp_path / "first", "")
    assert first.startswith("7.4.0-rc2-20")
    assert seen.line_of(first, watch.LINES) == "7.x"
    assert (tmp_path / "first" / RXE / "rxe_net.c").read_text() == "int a;\n"
    assert not (tmp_path / "first/kernel.c").exists()
    commit(server, "RDMA/rxe: Second", rxe_net="int b;\n")
    newest = commit(server, "mm: Elsewhere")
    assert mainline.head(url) == newest
    second = mainline.fetch(url, tmp_path / "second", first)
    assert newest.startswith(mainline.commit_of(second))
    assert mainline.changes(tmp_path / "second", first) == ["RDMA/rxe: Second"]


@pytest.mark.slow
def test_a_look_at_mainline(server: Path, tmp_path: Path) -> None:
    """What was seen is not fetched again, and a server that does not answer is none."""
    url = f"file://{server}"
    first = watch.Watch(tmp_path / "cache", []).mainline(url)
    assert (first.package, first.line, first.refused) == ("mainline", "7.x", "0001")
    again = watch.Watch(tmp_path / "cache", [first])
    assert again.mainline(url) == first
    assert again.changes == {}
    commit(server, "RDMA/rxe: Second", rxe_net="int b;\n")
    second = again.mainline(url)
    assert again.changes == {second.version: ["RDMA/rxe: Second"]}
    assert second.rxe != first.rxe
    assert again.mainline(f"{url}-gone") is None


class FakePools:
    """Pools with one kernel, whose driver is fetched once."""

    def __init__(self, version: str) -> None:
        """Of the line 6.12."""
        self.fetched = 0
        self._kernel = pools.Kernel("linux-source-6.12", version)

    def kernels(self) -> list[Any]:
        """Return the one."""
        return [self._kernel]

    def fetch(self, kernel: Any, out: Path) -> None:
        """Write a driver that refuses the series."""
        self.fetched += 1
        (out / RXE).mkdir(parents=True)
        (out / RXE / "rxe_net.c").write_text(f"/* {kernel.version} */\n")
        (out / "changelog").write_text(CHANGELOG)


@pytest.mark.slow
def test_a_look_at_the_pools(tmp_path: Path) -> None:
    """A new kernel is fetched, its changes are named; the cache then has its driver."""
    asked = argparse.Namespace(versions=["6.12.118-1"], mainline="")
    source = FakePools("6.12.118-1")
    known = [row("6.12.117-1"), row("6.12.119-1")]
    first = watch.Watch(tmp_path, known)
    rows = watch.look(first, source, asked)
    assert [(each.version, each.refused) for each in rows] == [("6.12.118-1", "0001")]
    assert len(first.changes["6.12.118-1"]) == 2
    again = watch.Watch(tmp_path, rows)
    assert watch.look(again, source, asked) == rows
    assert (source.fetched, again.changes) == (1, {})
    asked.versions = ["6.12.1-1"]
    assert watch.look(again, source, asked) == []


@pytest.mark.parametrize(
    ("suite", "own", "others"),
    [
        ("trixie-security", "trixie", {"trixie", "trixie-updates", "trixie-backports"}),
        ("experimental", "sid", {"sid"}),
        ("forky", "forky", set()),
    ],
)
def test_suites_of_a_build(suite: str, own: str, others: set[str]) -> None:
    """Headers come from their suite, what they depend on from its release."""
    release, lines = build.mirrors(suite)
    assert release == own
    assert {line.split()[2] for line in lines} == {suite, *others}


DKMS_CONF = 'BUILD_EXCLUSIVE_KERNEL="^6\\.12\\.(8|9)"\n'


def test_dkms_takes_what_fits() -> None:
    """A kernel that DKMS takes although it is refused, or leaves although it fits, is named."""
    rows = [
        seen.Seen("linux-source-6.12", release, "6.12", "0", refused, release)
        for release, refused in (("6.12.7", "1"), ("6.12.8", ""), ("6.12.9", "1"), ("6.12.10", ""))
    ]
    assert watch.wrong_choices(rows, DKMS_CONF) == [
        "DKMS builds for 6.12.9, which the series does not fit",
        "DKMS leaves alone 6.12.10, which the series fits",
    ]
    today = (watch.KERNEL / "dkms.conf").read_text()
    assert watch.wrong_choices(seen.read(watch.SEEN), today) == []


@pytest.mark.parametrize("names", [("linux-image-7", "linux-image-7-unsigned"), ("linux-image-7",)])
def test_package_of_a_boot_image(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
    """The one without a signature, if there are two."""
    listed = "\n".join((*names, "linux-image-7-unsigned-dbg", "linux-image-70"))
    monkeypatch.setattr(pools.Pools, "_apt", lambda *_: listed)
    assert object.__new__(pools.Pools).image("7") == names[-1]


def test_what_is_booted() -> None:
    """The newest of each line that fits, and that Debian has built."""
    rows = [
        seen.Seen(f"linux-source-{version}", version, line, "0", refused, releases)
        for version, line, refused, releases in (
            ("6.1.1", "6.1", "", "a"),
            ("6.12.1", "6.12", "", "b"),
            ("6.12.2", "6.12", "", "c"),
            ("6.12.3", "6.12", "0001", "d"),
            ("6.12.4", "6.12", "", ""),
        )
    ]
    assert [row.releases for row in watch.newest(rows)] == ["a", "c"]


def test_what_fails_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every release of a kernel that fits is built for; of those that are booted, all must work."""

    @contextmanager
    def dkms_root(target: Any, *, boot: bool) -> Iterator[Path | None]:
        if target.release == "e":
            raise watch.NoPackagesError
        yield None if target.release == "b" else tmp_path

    monkeypatch.setattr(watch, "dkms_root", dkms_root)
    monkeypatch.setattr(watch, "boots", lambda target, _: target.release != "d")
    monkeypatch.setattr(pools.Pools, "suite", lambda *_: "sid")
    monkeypatch.setattr(pools.Pools, "image", lambda *_: "linux-image")
    rows = [
        seen.Seen("linux-source-6.12", "1", "6.12", "0", refused, releases)
        for refused, releases in (("", "a b"), ("1", "a b"), ("", "c d e"))
    ]
    of_rows = watch.Watch(tmp_path, rows)
    asked = object.__new__(pools.Pools)
    built = watch.build_and_boot(of_rows, asked, rows, [])
    assert built.failed == ["does not build: b"]
    booted = watch.build_and_boot(of_rows, asked, rows, [rows[0], rows[2]])
    assert booted.failed == ["does not build: b", "does not work: d"]
    for outcome in (built, booted):
        (text,) = outcome.untried
        assert text.startswith("not tried: e, because apt cannot install its packages from sid")
