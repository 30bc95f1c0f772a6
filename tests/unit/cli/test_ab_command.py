# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab`: what is missing is said before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import in_process as rocelab
from rocelab.errors import ExitCode


@pytest.mark.parametrize("line", ["6.1", "7.x"])
def test_check_programs_of_another_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base's line has them, the change's has not: no machine boots, no folder is made."""
    build, out = tmp_path / "build", tmp_path / "runs"
    programs = build / "drivercheck" / "6.12"
    programs.mkdir(parents=True)
    (programs / "frame_fuzz").touch(mode=0o755)
    monkeypatch.setenv("ROCELAB_BUILD", str(build))
    done = rocelab("ab", "--check", "instrumented", f"line:{line}", "--out", str(out))
    assert done.returncode == ExitCode.MISSING
    assert f"drivercheck/{line}/frame_fuzz cannot be used" in done.stderr
    assert f"make drivercheck LINE={line}" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("instrumented", "instrumented+mtu:1500"), "asks for another MTU than the hosts have"),
        (("line:6.1", "instrumented"), "asks for another kernel than the hosts have"),
        (("--check", "instrumented", "delay"), "--check does not run on hosts of your own"),
        (("--icount", "instrumented", "delay"), "--icount cannot be used with --inventory"),
    ],
)
def test_what_hosts_cannot_do(tmp_path: Path, words: tuple[str, ...], what: str) -> None:
    """It is said before anybody logs in."""
    inventory, out = tmp_path / "hosts.toml", tmp_path / "runs"
    inventory.write_text("".join(f'[[host]]\nhost = "{n}.invalid"\nnetdev = "x"\n' for n in "ab"))
    done = rocelab("ab", "--inventory", str(inventory), "--out", str(out), *words)
    assert done.returncode == ExitCode.USAGE
    assert what in done.stderr
    assert not out.exists()
