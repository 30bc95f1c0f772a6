# SPDX-License-Identifier: GPL-2.0-or-later
"""`make install` needs nothing of the checkout; `make uninstall` leaves nothing."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from requirements import need_program

CHECKOUT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.slow


def make(target: str, prefix: Path) -> None:
    subprocess.run(
        [
            *("make", "-C", CHECKOUT, target, "SKIP_APT=1"),
            *(f"PREFIX={prefix}", f"WIRESHARK={prefix}/wireshark"),
        ],
        check=True,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """rocelab, installed; in the end it must be gone."""
    need_program("go-md2man")
    folder = tmp_path_factory.mktemp("prefix")
    make("install", folder)
    yield folder
    make("uninstall", folder)
    left = [path for path in folder.rglob("*") if not path.is_dir()]
    assert not left


def run(prefix: Path, *words: str, **environment: str) -> str:
    """Run the installed rocelab as a user elsewhere does; returns its output."""
    done = subprocess.run(
        [prefix / "bin/rocelab", *words],
        env={"PATH": os.environ["PATH"], "HOME": str(prefix.parent), **environment},
        cwd=prefix.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_it_runs_without_the_checkout(prefix: Path) -> None:
    sample = CHECKOUT / "captures/rc-v2-ipv4.pcap"
    assert "10.0.0.2" in run(prefix, "analyze", str(sample))
    for path in prefix.rglob("*"):
        assert not path.is_symlink() or not path.resolve().is_relative_to(CHECKOUT), path
        if path.suffix in {".py", ".pth", ".json", ".cfg"} or path.parent.name == "bin":
            assert os.fsencode(CHECKOUT) not in path.read_bytes(), path


def test_it_names_the_command_that_builds_an_image(prefix: Path) -> None:
    text = " ".join(run(prefix, "run", "demo", "--out", str(prefix.parent / "run")).split())
    assert f"make -C {prefix}/lib/rocelab/source " in text
    assert " image LINE=" in text


def test_the_sources_build_what_nodes_run(prefix: Path) -> None:
    """Each room that `make probes` enters is there."""
    source = prefix / "lib/rocelab/source"
    rooms = re.findall(r"-C ((?:tools/)?[a-z]+) .*O=", (source / "Makefile").read_text())
    assert {"kernel", "ebpf", "tools/mpibench", "tools/perftest"} <= set(rooms)
    assert [room for room in rooms if not (source / room / "Makefile").exists()] == []


def test_manual_pages_are_found_by_name(prefix: Path) -> None:
    pages = {path.stem for path in (prefix / "share/man").rglob("*.[178]")}
    written = {path.name.split(".")[0] for path in (CHECKOUT / "docs/man").glob("*.md")}
    assert pages == {"rocelab"} | written
    for path in (prefix / "share/man").rglob("*.[178]"):
        text = path.read_text()
        begin = rf".*^\.TH {path.stem} {path.suffix[1]} .*\n\.SH NAME\n\.PP\n{path.stem} \\?- \w"
        assert re.match(begin, text, re.MULTILINE | re.DOTALL), text[:300]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(prefix: Path, shell: str) -> None:
    (script,) = (
        path
        for path in (prefix / "share").rglob("*")
        if path.is_file() and shell in path.parts[-2] + path.parts[-3]
    )
    assert "_ROCELAB_COMPLETE" in script.read_text()
    # fish names the word, the others its number
    words = {"COMP_WORDS": "rocelab an", "COMP_CWORD": "an" if shell == "fish" else "1"}
    assert "analyze" in run(prefix, _ROCELAB_COMPLETE=f"{shell}_complete", **words)


def test_bash_completes(prefix: Path) -> None:
    script = f"""
        source {prefix}/share/bash-completion/completions/rocelab
        COMP_WORDS=(rocelab wireshark un) COMP_CWORD=2
        PATH={prefix}/bin:$PATH _rocelab_completion rocelab
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["uninstall"]


def test_wiresharks_files_run_without_a_users_python(prefix: Path) -> None:
    assert (prefix / "wireshark/plugins/rocelab.lua").exists()
    done = subprocess.run(
        [prefix / "wireshark/extcap/rocelab", "--extcap-interfaces", "--extcap-version=4.4"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("extcap {version=")
