# SPDX-License-Identifier: GPL-2.0-or-later
"""linktap says why it cannot capture or write, and leaves the file's former content."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from requirements import need_program

ROOT = Path(__file__).parents[3]
LINKTAP = ROOT / "ebpf/linktap"
LIB = ROOT / "ebpf/lib"


@pytest.fixture(scope="module")
def linktap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_program("cc")
    program = tmp_path_factory.mktemp("linktap") / "linktap"
    out = program.parent
    subprocess.run(["make", "-s", "-C", str(ROOT / "ebpf"), f"O={out}", "tables"], check=True)
    sources = [LINKTAP / f"{name}.c" for name in ("linktap", "pcap", "count")]
    sources += [LIB / f"{name}.c" for name in ("bth", "json", "msg")]
    flags = ("-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{LINKTAP}", f"-I{LIB}")
    subprocess.run(["cc", *flags, f"-I{out}/obj/tables", *sources, "-o", program], check=True)
    return program


def test_who_may_not_capture_keeps_the_file(linktap: Path, tmp_path: Path) -> None:
    """Without the right to packet sockets, an older capture stays, and no new file is made."""
    without_right: tuple[str, ...] = ()
    if os.geteuid() == 0:
        need_program("setpriv")
        without_right = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
    older = tmp_path / "older.pcap"
    older.write_text("an hour's capture")
    for path in (older, tmp_path / "new.pcap"):
        done = subprocess.run(
            [*without_right, linktap, "-w", path, "lo"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert "cannot capture: Operation not permitted" in done.stderr
        assert "run it as root" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["older.pcap"]
    assert older.read_text() == "an hour's capture"


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")
def test_a_name_that_cannot_be_written(linktap: Path, tmp_path: Path) -> None:
    """The cause is the name's: a folder, or one that is not there."""
    for path, error, cause in (
        (tmp_path, "Is a directory", "the name of a folder is given"),
        (tmp_path / "none/new.pcap", "No such file", "its folder is missing"),
    ):
        done = subprocess.run(
            [linktap, "-w", path, "lo"], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2
        assert f"cannot write {path}: {error}" in done.stderr
        assert f"likely cause: {cause}" in done.stderr
