# SPDX-License-Identifier: GPL-2.0-or-later
"""tshark with the plugin installed in its plugin folder, as on a user's machine.

Uses this machine's tshark, and that of the other supported Debian from the folder of `make tshark`.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from requirements import missing, need_program

REPOSITORY = Path(__file__).resolve().parents[2]
PLUGIN = REPOSITORY / "tools/wireshark/rocelab.lua"
_NOBODY = "65534"


def _other() -> str:
    here = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    return "bookworm" if here == "trixie" else "trixie"


INSTALLED = "installed"
WHICH = (INSTALLED, pytest.param(_other(), marks=pytest.mark.slow))
"""For parametrize: this machine's tshark, and another Debian's by its suite."""


class TsharkError(AssertionError):
    """tshark ended with an error, or Lua did."""


@dataclass(frozen=True)
class Tshark:
    """One tshark, in a home where nothing of the person who runs the tests matters."""

    home: Path
    root: Path | None = None
    """The files of another Debian, whose tshark it is."""

    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}

    def command(self, files: Iterable[Path] = ()) -> list[str]:
        """The words to start it with, to which its options are added; it sees these files."""
        if self.root is None:
            return ["tshark"]
        argv = ["bwrap", "--ro-bind", str(self.root / "usr"), "/usr"]
        for name in ("bin", "lib", "lib64"):
            argv += ["--symlink", f"usr/{name}", f"/{name}"]
        argv += ["--ro-bind", str(self.root / "etc"), "/etc", "--dev", "/dev", "--proc", "/proc"]
        argv += ["--perms", "1777", "--tmpfs", "/tmp"]
        for option, path in (("--bind", self.home), *(("--ro-bind", file) for file in files)):
            # pytest's folders are for their owner alone
            for parent in reversed(path.parents[:-1]):
                argv += ["--perms", "0755", "--dir", str(parent)]
            argv += [option, str(path), str(path)]
        argv += ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent"]
        argv += ["--clearenv", "--setenv", "PATH", "/usr/bin"]
        argv += ["--setenv", "HOME", str(self.home), "--setenv", "LC_ALL", "C.UTF-8"]
        if os.geteuid() == 0:
            # Wireshark from 4.4 on runs no personal scripts for root
            argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
            argv += ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
            argv += ["--inh-caps=-all", "--"]
        return [*argv, "tshark"]

    def script(self, path: Path, files: Iterable[Path] = ()) -> None:
        """Write a program that is this tshark, for who finds it in PATH."""
        path.write_text(f'#!/bin/sh\nexec {shlex.join(self.command(files))} "$@"\n')
        path.chmod(0o755)

    def run(self, *words: str | Path) -> str:
        """What `tshark WORDS` prints; a Path among them is a file that it reads."""
        files = [word for word in words if isinstance(word, Path)]
        done = subprocess.run(
            [*self.command(files), *map(str, words)],
            env=self._environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
        # it says so of a file that ends in the middle of a packet, after it has shown the others
        failed = done.returncode and "cut short" not in done.stderr
        if failed or "Lua" in done.stderr or ".lua:" in done.stderr:
            raise TsharkError(f"status {done.returncode}: {done.stderr}")
        return done.stdout

    def place(self, plugin: Path = PLUGIN) -> None:
        """The one file in the folder, and nothing else."""
        listed = self.run("-G", "folders").splitlines()
        (line,) = (line for line in listed if line.startswith("Personal Lua Plugins"))
        folder = Path(line.partition(":")[2].strip())
        folder.mkdir(parents=True)
        (folder / "rocelab.lua").write_bytes(plugin.read_bytes())

    def fields(self, capture: Path, names: Sequence[str], *words: str) -> dict[int, dict[str, str]]:
        """`tshark -T fields` of a capture, by frame number.

        Raises TsharkError where Lua failed on a packet.
        """
        columns = ["frame.number", *names, "_ws.lua.error"]
        argv: list[str | Path] = ["-n", "-r", capture, *words, "-T", "fields"]
        for name in columns:
            argv += ["-e", name]
        rows = {}
        for line in self.run(*argv).split("\n")[:-1]:
            row = dict(zip(columns, line.split("\t"), strict=True))
            number = int(row.pop("frame.number"))
            if row.pop("_ws.lua.error"):
                raise TsharkError(f"Lua failed on frame {number} of {capture}")
            rows[number] = row
        return rows


def bare(which: str, home: Path) -> Tshark:
    """One of WHICH without the plugin; skips, or fails in CI, if it is not there."""
    # it may run as nobody
    home.chmod(0o755)
    if which == INSTALLED:
        need_program("tshark")
        return Tshark(home)
    need_program("bwrap")
    root = REPOSITORY / "build/tshark" / which
    if not root.is_dir():
        missing(f"no tshark of {which}: run `make tshark`")
    return Tshark(home, root.resolve())


def with_plugin(which: str, home: Path, plugin: Path = PLUGIN) -> Tshark:
    """One of WHICH with the plugin; skips, or fails in CI, if it is not there."""
    tshark = bare(which, home)
    tshark.place(plugin)
    return tshark


def flag(text: str) -> str:
    """A boolean as tshark 4.0 prints it; later ones print words."""
    return {"True": "1", "False": "0"}.get(text, text)
