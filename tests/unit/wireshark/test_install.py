# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab wireshark install | uninstall` in a temporary home, with the real tshark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tshark_plugin
from command_line import in_process as rocelab
from corpus import CAPTURES
from rocelab.wireshark import install
from rocelab.wireshark.folders import Folders
from rocelab.wireshark.install import PROFILE
from tshark_plugin import Tshark

pytestmark = pytest.mark.slow

SOURCE = tshark_plugin.PLUGIN.parent


@pytest.fixture(params=tshark_plugin.WHICH)
def tshark(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Tshark:
    """Each Debian's tshark in turn, first in PATH and without the plugin."""
    for name in ("home", "bin"):
        (tmp_path / name).mkdir()
    tshark = tshark_plugin.bare(request.param, tmp_path / "home")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "WIRESHARK_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tshark.home))
    if tshark.root:
        tshark.script(tmp_path / "bin/tshark")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tshark


@pytest.fixture
def home(tshark: Tshark) -> Path:
    """The user's home."""
    return tshark.home


def tree(home: Path) -> set[Path]:
    return {path.relative_to(home) for path in home.rglob("*")}


def profile(home: Path) -> Path:
    return home / ".config/wireshark/profiles/rocelab"


def test_install_and_uninstall(tshark: Tshark, home: Path) -> None:
    before = tree(home)
    answer = rocelab("wireshark", "install")
    assert answer.returncode == 0, answer.stderr
    for name in PROFILE:
        assert (profile(home) / name).read_bytes() == (SOURCE / "profile" / name).read_bytes()
    rows = tshark.run("-n", "-r", CAPTURES / "icrc-corrupted.pcap", "-C", "rocelab")
    if "does not load the plugin" not in answer.stderr:
        assert " Bad " in rows
    # no heuristic dissector claims a benchmark's payload
    guessed = [
        "-n",
        "-r",
        CAPTURES / "rc-v2-ipv4.pcap",
        "-Y",
        'frame.protocols contains "rpcordma"',
    ]
    assert tshark.run(*guessed)
    assert not tshark.run(*guessed, "-C", "rocelab")
    assert rocelab("wireshark", "install").returncode == 0
    answer = rocelab("wireshark", "uninstall")
    assert answer.returncode == 0, answer.stderr
    assert tree(home) == before
    answer = rocelab("wireshark", "uninstall")
    assert answer.returncode == 0
    assert "nothing was installed" in answer.stdout


def test_the_users_own_files_stay(home: Path) -> None:
    own = profile(home) / "preferences"
    own.parent.mkdir(parents=True)
    own.write_text("gui.column.format: my own\n")
    before = tree(home)
    answer = rocelab("wireshark", "install")
    assert answer.returncode == 2
    assert str(own) in answer.stderr
    assert "--force" in answer.stderr
    assert tree(home) == before
    assert own.read_text() == "gui.column.format: my own\n"
    answer = rocelab("wireshark", "install", "--force")
    assert answer.returncode == 0, answer.stderr
    assert f"replaced {own}" in answer.stdout


@pytest.mark.slow
def test_changed_files_stay(home: Path) -> None:
    """Wireshark saves changed columns into the profile, and other files next to it."""
    assert rocelab("wireshark", "install").returncode == 0
    changed, added = profile(home) / "preferences", profile(home) / "recent"
    changed.write_text("gui.column.format: changed\n")
    added.write_text("theirs\n")
    assert rocelab("wireshark", "install").returncode == 2
    answer = rocelab("wireshark", "uninstall")
    assert answer.returncode == 0
    assert f"kept, changed since: {changed}" in answer.stdout
    files = {path for path in home.rglob("*") if path.is_file()}
    assert files == {changed, added}


def test_no_tshark(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    answer = rocelab("wireshark", "install")
    assert answer.returncode == 3
    assert "tshark is not installed" in answer.stderr
    assert "apt-get install tshark" in answer.stderr


@pytest.mark.slow
def test_a_damaged_record(home: Path) -> None:
    record = home / ".config/wireshark/rocelab-installed.json"
    record.parent.mkdir(parents=True)
    for text in ("", "[]", "{}", '{"schema": "other/1"}'):
        record.write_text(text)
        for word in ("install", "uninstall"):
            answer = rocelab("wireshark", word)
            assert answer.returncode == 2, text
            assert str(record) in answer.stderr


def test_a_file_in_the_way(home: Path) -> None:
    """The system's error becomes a message, and nothing is written."""
    (home / ".config").write_text("a file where Wireshark wants a folder\n")
    before = tree(home)
    answer = rocelab("wireshark", "install")
    assert answer.returncode == 2
    assert "Not a directory" in answer.stderr
    assert tree(home) == before


def test_without_a_place_for_the_record_nothing_is_installed(tmp_path: Path) -> None:
    """Nobody could uninstall files of which there is no record."""
    # nobody can make a folder there, not even root
    where = Folders(tmp_path / "lua", Path("/sys/wireshark"), tmp_path / "extcap")
    with pytest.raises(OSError, match="/sys/wireshark"):
        install.install(where)
    assert tree(tmp_path) == set(), "files or folders are left, and no record names them"


def test_a_file_that_cannot_be_written_leaves_the_record_of_the_others(tmp_path: Path) -> None:
    where = Folders(tmp_path / "lua", tmp_path / "config", Path("/sys/wireshark"))
    with pytest.raises(OSError, match="/sys/wireshark"):
        install.install(where)
    written = {where.lua, where.lua / install.PLUGIN}
    assert written <= {tmp_path / path for path in tree(tmp_path)}
    assert install.uninstall(where).done == [where.lua / install.PLUGIN]
    assert tree(tmp_path) == set()


def test_the_package_has_the_sources() -> None:
    """The wheel contains the files of tools/wireshark."""
    from rocelab import wireshark

    files = Path(wireshark.__file__).parent / "files"
    names = {path.name for path in files.iterdir()}
    assert names == {"rocelab.lua", "extcap-rocelab", *PROFILE}
    assert (files / "extcap-rocelab").resolve() == SOURCE / "extcap/rocelab"
    for name in names - {"extcap-rocelab"}:
        (source,) = (path for path in SOURCE.rglob(name) if path.is_file())
        assert (files / name).resolve() == source


def test_every_colour_rule_is_a_filter(tshark: Tshark) -> None:
    """Wireshark silently drops a rule that it does not understand."""
    tshark.place()
    rules = [line for line in (SOURCE / "profile/colorfilters").read_text().splitlines()
             if line.startswith("@")]  # fmt: skip
    assert len(rules) > 5
    # one run for all: each must compile for the whole to do so
    whole = " || ".join(f"({rule.split('@')[2]})" for rule in rules)
    assert tshark.run("-n", "-r", CAPTURES / "icrc-corrupted.pcap", "-Y", whole)


def test_the_extcap_runs_with_this_python(tshark: Tshark, home: Path) -> None:
    """It is where Wireshark looks, or the output says how to make Wireshark look there."""
    answer = rocelab("wireshark", "install")
    assert answer.returncode == 0, answer.stderr
    extcap = home / ".local/lib/wireshark/extcap/rocelab"
    assert f"installed {extcap}" in answer.stdout
    done = subprocess.run(
        [extcap, "--extcap-interfaces"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("extcap {version=")
    listed = tshark.run("-G", "folders")
    if str(extcap.parent) in listed:
        assert "live interfaces" not in answer.stderr
    else:
        assert f"WIRESHARK_EXTCAP_DIR={extcap.parent} wireshark" in answer.stderr


@pytest.mark.parametrize("folder", ["a folder", "it's", "x" * 150])
def test_a_python_that_a_shebang_cannot_name(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rocelab.wireshark import install

    python = tmp_path / folder / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    source = b"#!/usr/bin/env python3\nimport sys; print(sys.argv[1:])\n"
    script = tmp_path / "script"
    script.write_bytes(install._with_python(source))
    script.chmod(0o755)
    done = subprocess.run([script, "a b"], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "['a b']\n", done.stderr
