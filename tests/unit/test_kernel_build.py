# SPDX-License-Identifier: GPL-2.0-or-later
"""kernel/scripts: what is fetched, applied, refused and named. No kernel is built here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

KERNEL = Path(__file__).parents[2] / "kernel"
SCRIPTS = KERNEL / "scripts"
RXE = "drivers/infiniband/sw/rxe"
# a driver of our own, so that the test needs no kernel's: a folder with this file is an rxe folder
SOURCE = "".join(f"int line{number};\n" for number in range(1, 41))
PATCH = f"""\
--- a/{RXE}/rxe_net.c
+++ b/{RXE}/rxe_net.c
@@ -18,7 +18,7 @@
 int line18;
 int line19;
 int line20;
-int line21;
+int patched21;
 int line22;
 int line23;
 int line24;
"""


def script(name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one of the scripts."""
    return subprocess.run(
        ["sh", str(SCRIPTS / f"{name}.sh"), *words],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
    )


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    """A tree with a driver in it."""
    folder = tmp_path / "pristine" / RXE
    folder.mkdir(parents=True)
    (folder / "rxe_net.c").write_text(SOURCE)
    return tmp_path / "pristine"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    """A patch that applies to it."""
    path = tmp_path / "0001-patch.patch"
    path.write_text(PATCH)
    return path


def net(tree: Path) -> Path:
    """The file that is patched."""
    return tree / RXE / "rxe_net.c"


def test_apply(pristine: Path, patch: Path, tmp_path: Path) -> None:
    """The tree is the source with the patch and the shared files; the source stays pristine."""
    shared = tmp_path / "shared.h"
    shared.write_text("/* shared */\n")
    done = script(
        "apply", str(pristine), str(tmp_path / "tree"), "6.12.1-1", str(shared), str(patch)
    )
    assert done.returncode == 0, done.stderr
    assert "int patched21;" in net(tmp_path / "tree").read_text()
    assert (tmp_path / "tree" / RXE / "shared.h").exists()
    assert net(pristine).read_text() == SOURCE


def test_apply_moved_lines(pristine: Path, patch: Path, tmp_path: Path) -> None:
    """Lines that only moved are found: that is no fuzz."""
    net(pristine).write_text("int new;\n" * 5 + SOURCE)
    done = script("apply", str(pristine), str(tmp_path / "tree"), "6.12.1-1", "", str(patch))
    assert done.returncode == 0, done.stderr
    assert "int patched21;" in net(tmp_path / "tree").read_text()


@pytest.mark.parametrize("line", ["line19", "line21", "line24"])
def test_apply_refuses_fuzz(pristine: Path, patch: Path, tmp_path: Path, line: str) -> None:
    """A changed line, in the context or not, stops it: with file, hunk, patch and version."""
    net(pristine).write_text(SOURCE.replace(f"int {line};", f"long {line};"))
    done = script("apply", str(pristine), str(tmp_path / "tree"), "6.12.999-1", "", str(patch))
    assert done.returncode != 0
    assert f"{RXE}/rxe_net.c" in done.stderr
    assert re.search(r"Hunk #1 FAILED at 18", done.stderr)
    assert "0001-patch.patch does not apply to rxe 6.12.999-1" in done.stderr
    assert "what to do" in done.stderr


def test_apply_knows_an_applied_series(pristine: Path, patch: Path, tmp_path: Path) -> None:
    """A source that has the series already is taken as it is, and said to be."""
    net(pristine).write_text(SOURCE.replace("int line21;", "int patched21;"))
    done = script("apply", str(pristine), str(tmp_path / "tree"), "6.12.1-1", "", str(patch))
    assert done.returncode == 0, done.stderr
    assert "applied in the source already" in done.stdout
    assert net(tmp_path / "tree").read_text() == net(pristine).read_text()


@pytest.mark.parametrize("variable", ["RXE_SRC", "KSRC"])
def test_fetch_from_a_tree(pristine: Path, tmp_path: Path, variable: str) -> None:
    """A kernel tree gives its driver and its version."""
    (pristine / "Makefile").write_text(
        "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 34\nEXTRAVERSION =\n"
    )
    out = tmp_path / "out"
    done = script("fetch", "6.12", "6.12.34-x", str(out), **{variable: str(pristine)})
    assert done.returncode == 0, done.stderr
    assert net(out).read_text() == SOURCE
    assert (out / "version").read_text() == "6.12.34\n"


def test_fetch_from_the_folder(pristine: Path, tmp_path: Path) -> None:
    """The rxe folder itself will do."""
    out = tmp_path / "out"
    done = script("fetch", "6.12", "6.12.34-x", str(out), RXE_SRC=str(pristine / RXE))
    assert done.returncode == 0, done.stderr
    assert net(out).read_text() == SOURCE


def test_fetch_from_debian_tarball(pristine: Path, tmp_path: Path) -> None:
    """What the linux-source package installs: one tar.xz, of which the driver is taken, whole."""
    (pristine / RXE / "Makefile").write_text("obj-m += rdma_rxe.o\n")
    (pristine / "drivers/other.c").write_text("int other;\n")
    pristine.rename(tmp_path / "linux-source-6.12")
    sources = tmp_path / "src"
    sources.mkdir()
    tarball = sources / "linux-source-6.12.tar.xz"
    subprocess.run(["tar", "-cJf", tarball, "-C", tmp_path, "linux-source-6.12"], check=True)
    out = tmp_path / "out"
    done = script("fetch", "6.12", "6.12.34-x", str(out), SOURCES=str(sources))
    assert done.returncode == 0, done.stderr
    taken = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert taken == [f"{RXE}/Makefile", f"{RXE}/rxe_net.c", "version"]
    # cut short: an error, and no half of a driver
    tarball.write_bytes(tarball.read_bytes()[:-40])
    shutil.rmtree(out)
    done = script("fetch", "6.12", "6.12.34-x", str(out), SOURCES=str(sources))
    assert done.returncode != 0
    assert f"cannot unpack {tarball}" in done.stderr
    assert not out.exists()


def test_fetch_from_elsewhere(tmp_path: Path) -> None:
    """A folder without the driver is an error that says so, and nothing is made."""
    done = script("fetch", "6.12", "6.12.34-x", str(tmp_path / "out"), RXE_SRC=str(tmp_path))
    assert done.returncode != 0
    assert f"no rxe driver in {tmp_path}" in done.stderr
    assert "what to do" in done.stderr
    assert not (tmp_path / "out").exists()


def patch_id(base: Path) -> str:
    """The id of a copy of the kernel folder's series."""
    files = [
        *sorted((base / "patches/6.12").glob("*.patch")),
        *sorted((base / "src").glob("*.[ch]")),
    ]
    done = script("patch-id", str(base), *map(str, files))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_patch_id(tmp_path: Path) -> None:
    """It is 12 hexadecimal digits, the same anywhere, and another for any change."""
    first, second = tmp_path / "a", tmp_path / "b"
    for copy in (first, second):
        shutil.copytree(KERNEL, copy)
    known = patch_id(first)
    assert re.fullmatch(r"[0-9a-f]{12}", known)
    assert patch_id(second) == known
    with (second / "src/rxe_stage.c").open("a") as file:
        file.write("\n")
    assert patch_id(second) != known
    (first / "src/rxe_stage.c").rename(first / "src/rxe_staged.c")
    assert patch_id(first) != known


def test_unknown_line_and_variant() -> None:
    """What cannot be built is said at once."""
    make = ["make", "-C", str(KERNEL), "KVER=5.10.0-amd64"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No patch series for kernel line 5.10" in done.stderr
    done = subprocess.run([*make, "VARIANT=fast"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "VARIANT=fast is not one of: instrumented stock delay" in done.stderr


def test_series_form() -> None:
    """Each patch can be mailed: numbered, signed off, about the driver alone."""
    patches = sorted((KERNEL / "patches").glob("*/*.patch"))
    assert patches
    for path in patches:
        text = path.read_text()
        assert re.match(r"\d{4}-RDMA-rxe-", path.name)
        assert "\nSigned-off-by: " in text
        assert re.search(r"^Subject: \[PATCH\] RDMA/rxe: [A-Z]", text, re.MULTILINE)
        touched = re.findall(r"^\+\+\+ b/(.*)$", text, re.MULTILINE)
        assert touched
        assert all(name.startswith(f"{RXE}/") for name in touched)
