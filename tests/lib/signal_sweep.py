# SPDX-License-Identifier: GPL-2.0-or-later
"""End commands by signals, at moments from their beginning to their end: `signal_sweep.py FILE`.

Each attempt is a fork of this process, which has the modules already: so thousands take a minute.
It has no more of them than the command needs while it can: copying the tables of a large process
takes longer than most commands. Reads cases from FILE as JSON; writes what was wrong to standard
output, a JSON list per case.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib
import json
import os
import pkgutil
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
MOMENTS = tuple((number + 0.5) / 10 for number in range(10))
"""Parts of the time that a command takes."""
_HEAVY = ("polars", "altair", "vl_convert")
"""Modules that make a process large."""
_IS_HEAVY = 77
"""The exit code of a rehearsal that needs one of them."""
_BUGS = ("Traceback", "internal error", "panicked", "Exception ignored", "Fatal Python error")
_AT_ONCE = 2.0
"""Seconds of the processor after the signal, at most."""
_HANGS = 20.0
_LEFT_BY_KILL = re.compile(
    r"(.*/)?\.[^/]+\.[0-9a-f]{16}\.part|tmp/rocelab/\.[\w-]+\.lock|tmp/[a-z0-9_]{8}"
)
"""A new file between its two system calls, link and rename; locks, which nobody holds then; the
file by which Python's tempfile tries whether it can write."""
_PR_SET_CHILD_SUBREAPER = 36

_JOURNAL = "rocelab-installed.json"
"""Says what is installed so far, so that `wireshark uninstall` finds it."""


@dataclass(frozen=True)
class Case:
    """A command line, and the files that it finds in its folder."""

    name: str
    words: list[str]
    folder: str
    """Copied for each attempt: the current folder, which has `home` and `tmp`."""
    path: str
    """PATH."""
    waits: float = 0.0
    """The command waits for something that never comes: seconds in which it is ended."""
    once: bool = False
    """A fault counts that does not come again at its moment."""
    every: bool = False
    """Each signal at each moment; else each at every other, so that all moments have some."""

    @property
    def attempts(self) -> list[tuple[signal.Signals, float]]:
        """The signals and their moments."""
        return [
            (number, moment)
            for first, number in enumerate(SIGNALS)
            for moment in (MOMENTS if self.every else MOMENTS[first % 2 :: 2])
        ]


@dataclass(frozen=True)
class Ended:
    """What an attempt left."""

    code: int
    seconds: float
    after: float
    """Seconds of the processor after the signal."""
    printed: bytes
    said: str
    files: dict[str, str]
    """Size and digest of each file below the folder."""
    processes: bool
    """Whether one of its processes is left."""
    hung: bool


def _import_all() -> None:
    """Import what commands import when they need it; forks then have it."""
    import rocelab

    for module in pkgutil.walk_packages(rocelab.__path__, "rocelab."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # extras that are not installed
                importlib.import_module(module.name)


class _Refusing(MetaPathFinder):
    """Ends a rehearsal that needs a heavy module."""

    def find_spec(self, fullname: str, *_: object) -> None:
        """End this process."""
        if fullname in _HEAVY:
            os._exit(_IS_HEAVY)


def _rehearse(case: Case, within: Path) -> bool:
    """Import what the command imports; return False if it needs a heavy module, and do nothing."""
    folder = _prepared(case, within)
    pid = os.fork()
    if not pid:
        sys.meta_path.insert(0, _Refusing())
        # it ends with the signal: what it waits for never comes
        signal.setitimer(signal.ITIMER_REAL, case.waits)
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
        _child(case, folder, within, told=True)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == _IS_HEAVY:
        return False
    for module in (within / "modules").read_text().split():
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()
    return True


def _child(case: Case, folder: Path, streams: Path, *, told: bool = False) -> NoReturn:
    """Be the command. `told`: write down what it has imported."""
    os.setsid()
    os.chdir(folder)
    os.environ |= {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "XDG_RUNTIME_DIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "home/.cache"),
        "PATH": case.path,
    }
    for number, where in enumerate(("/dev/null", str(streams / "printed"), str(streams / "said"))):
        opened = os.open(where, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
    os.closerange(3, 64)
    sys.argv = ["rocelab", *case.words]
    from rocelab.cli import main

    code: object = None
    try:
        main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    if told:
        (streams / "modules").write_text("\n".join(sys.modules))
    # taking down all modules would take longer than most commands
    os._exit(code if isinstance(code, int) else 99)


def _prepared(case: Case, within: Path) -> Path:
    """Return the folder as an attempt finds it: the last one's, without what that added."""
    folder = within / "folder"
    wanted, present = _at_first(case.folder), _content(folder)
    for name in sorted(present.keys() - wanted.keys(), reverse=True):
        path = folder / name
        (path.rmdir if path.is_dir() and not path.is_symlink() else path.unlink)()
        del present[name]
    if present != wanted:
        shutil.rmtree(within, ignore_errors=True)
        shutil.copytree(case.folder, folder, symlinks=True)
    for name in ("printed", "said", "modules"):
        (within / name).unlink(missing_ok=True)
    return folder


@functools.cache
def _at_first(folder: str) -> dict[str, str]:
    return _content(Path(folder))


def _used(pid: int) -> float:
    """Seconds of the processor so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _handles_signals(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)
    return bool(caught and int(caught[1], 16) >> (signal.SIGHUP - 1) & 1)


def _attempt(case: Case, within: Path, number: int = 0, delay: float = 0.0) -> Ended:
    """Run it; send it a signal after `delay` seconds if `number` is one."""
    folder = _prepared(case, within)
    pid = os.fork()
    if not pid:
        # who starts us in the background has SIGINT ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        _child(case, folder, within)
    while not _has_ended(pid) and not _handles_signals(pid):
        time.sleep(0.001)
    began = time.monotonic()
    while time.monotonic() < began + delay and not _has_ended(pid):
        time.sleep(0.001)
    before = 0.0
    if number and not _has_ended(pid):
        before = _used(pid)
        # a terminal sends Ctrl-C to all
        (os.killpg if number == signal.SIGINT else os.kill)(pid, number)
    hung = False
    while not _has_ended(pid):
        if time.monotonic() > began + delay + _HANGS:
            hung = True
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.002)
    takes = time.monotonic() - began
    _, status, used = os.wait4(pid, 0)
    left = _left(pid, number)
    return Ended(
        os.waitstatus_to_exitcode(status),
        takes,
        used.ru_utime + used.ru_stime - before if before else 0.0,
        (within / "printed").read_bytes().replace(bytes(within), b""),
        (within / "said").read_text(errors="replace"),
        _files(folder),
        left,
        hung,
    )


def _left(group: int, number: int) -> bool:
    """Say whether a process of the group outlives its command for long; end it, reap all."""
    deadline = time.monotonic() + 10
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        if number == signal.SIGKILL or time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            return number != signal.SIGKILL
        time.sleep(0.005)


def _files(folder: Path) -> dict[str, str]:
    files = _content(folder)
    return {path: about for path, about in files.items() if about and not path.endswith(_JOURNAL)}


def _content(folder: Path) -> dict[str, str]:
    """Size and digest of each file below a folder; an empty text for what is no file."""
    entries = {}
    for place, folders, names in os.walk(folder):
        within = os.path.relpath(place, folder)
        for name in (*folders, *names):
            path = Path(place, name)
            about = ""
            if name in names and path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                about = f"{len(content)} {hashlib.md5(content).hexdigest()}"
            entries[os.path.normpath(os.path.join(within, name))] = about
    return entries


def _size(about: str | None) -> str | None:
    return None if about is None else about.split()[0]


def _faults(number: int, done: Ended, whole: Ended | None, start: dict[str, str]) -> list[str]:
    """Say what is wrong with how a command ended."""
    faults = [f"{word}: {done.said[-400:]}" for word in _BUGS if word in done.said]
    killed = done.code == -signal.SIGKILL
    if done.hung:
        faults.append("hangs")
    if done.processes:
        faults.append("leaves a process")
    as_if_none = whole is not None and done.code == whole.code
    if not as_if_none and done.code not in ({-number} if killed else {128 + number}):
        faults.append(f"exit code {done.code}: {done.said[-400:]}")
    if done.code == 128 + number and done.said.count("interrupted by ") != 1:
        faults.append(f"does not say once what ended it: {done.said[-400:]}")
    if done.after > _AT_ONCE:
        faults.append(f"goes on for {done.after:.1f} s of the processor")
    after = whole.files if whole is not None else {}
    wrong = [
        path
        for path, about in done.files.items()
        if about not in (start.get(path), after.get(path))
        # what has the time in it
        and (path not in after or _size(about) != _size(after[path]))
        and not (killed and _LEFT_BY_KILL.fullmatch(path))
    ]
    wrong += [f"{path} is gone" for path in start if path not in done.files and path in after]
    if as_if_none and set(done.files) != set(after):
        wrong += sorted({*done.files} ^ {*after})
    if wrong:
        faults.append(f"exit code {done.code} leaves {wrong}")
    return faults


def sweep(case: Case, within: Path) -> list[str]:
    """Return what was wrong in any attempt."""
    start = _files(Path(case.folder))
    whole: Ended | None = None
    if not case.waits:
        first, whole = (_attempt(case, within) for _ in range(2))
        faults = _faults(0, whole, whole, start)
        faults = [each for each in faults if not each.startswith("does not say")]
        same = first.printed == whole.printed
    else:
        faults, same = [], False
    takes = case.waits or (whole.seconds if whole else 0)
    for number, moment in case.attempts:

        def tried(number: int = number, moment: float = moment) -> list[str]:
            done = _attempt(case, within, number, moment * takes)
            wrong = _faults(number, done, whole, start)
            return wrong + (_printing(done, whole) if same and whole is not None else [])

        wrong = tried()
        if wrong and (case.once or tried()):
            faults += [f"{number.name} at {moment}: {each}" for each in wrong]
    return faults


def _printing(done: Ended, whole: Ended) -> list[str]:
    """Say what is wrong with the output of a command that prints the same each time."""
    faults = []
    # results of a part say that they are
    if b"interrupted" not in done.printed and not whole.printed.startswith(done.printed):
        faults.append(f"prints something else: {done.printed[-300:]!r}")
    if done.code == whole.code and done.printed != whole.printed:
        faults.append("prints a part and exits as for the whole")
    return faults


def main() -> None:
    """Try all cases."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    given = json.loads(Path(sys.argv[1]).read_text())
    within = Path(given["within"])

    def answer(case: Case) -> None:
        began = os.times()
        faults = [f"{case.name}: {fault}" for fault in sweep(case, within)]
        used = sum(os.times()[:4]) - sum(began[:4])
        print(
            json.dumps({"case": case.name, "faults": faults, "seconds": round(used, 1)}), flush=True
        )

    importlib.import_module("rocelab.cli.app")
    heavy = []
    for each in given["cases"]:
        case = Case(**each)
        if _rehearse(case, within):
            answer(case)
        else:
            heavy.append(case)
    if heavy:
        _import_all()
        gc.collect()
        gc.freeze()
    for case in heavy:
        answer(case)


if __name__ == "__main__":
    main()
