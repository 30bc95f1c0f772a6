# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on a testbed that is up, disturbed at a chosen moment, and what they must leave."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import polars as pl

from polling import wait_until
from rocelab.errors import ExitCode
from rocelab.record import results_table
from rocelab.testbed import lease
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machines

_ID = "ROCELAB_TEST_KILLED_RUN"
"""Environment variable that all processes of a run on this machine inherit."""
_LEFT_SECONDS = 300
"""Within which the machines are clean after a kill. A lease takes seconds, or more under load."""
# what a run makes on a machine, apart from its processes
_TRACES = """
ls -d /tmp/* /run/rocelab-* /dev/shm/* 2>/dev/null
tc qdisc show | grep 4791
cat /sys/module/rdma_rxe/parameters/roce_v1
ip -br link
rdma link
grep -s . /sys/class/infiniband/*/ports/1/gid_attrs/types/*
ls -d /sys/kernel/config/rdma_cm/* /sys/kernel/tracing/instances/* 2>/dev/null
"""
_PROCESSES = "grep -lsz ^ROCELAB_PROCESS= /proc/[0-9]*/environ | cut -d/ -f3"

_SENT_AGAIN = ("completer_retry_err", "duplicate_request", "out_of_seq_request", "rcvd_seq_err")
_MESSAGES = 60
"""Of each side of the plan's send_lat."""
_PLAN = """
[plan]
name = "kills"
repetitions = 1
transports = ["{transport}"]
probes = ["rxestat", "rxedump", "rxecpu"]
[testbed]
provider = "{provider}"
[[benchmark]]
tool = "perftest"
test = "send_lat"
events = true
sizes = [64]
iterations = {messages}
qp_timeout = 18
timeout = 120
"""
_MPI = """
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [4]
iterations = 10
timeout = 300
"""


def plan_text(provider: str, *, transport: str = "rxe-v2", mpi: bool = True) -> str:
    """A plan with every probe: perftest, and MPI after it."""
    perftest = _PLAN.format(messages=_MESSAGES, provider=provider, transport=transport)
    return perftest + (_MPI if mpi else "")


def expected(transport: str) -> dict[tuple[str, str], int]:
    """Metric and kind to what perftest counts over a lossless link; others are 0."""
    return {
        **{
            (f"packets.{place}", kind): _MESSAGES
            for place in ("tx", "rx", "done")
            for kind in ("SEND", "ACKNOWLEDGE")
        },
        ("wire.frames", f"roce_{transport.removeprefix('rxe-')}"): 4 * _MESSAGES,
        ("latency.samples", "one_way_half_rtt"): _MESSAGES - 1,
    }


def local_processes(value: str) -> list[int]:
    """The processes here that inherited the run's mark, without zombies."""
    mark = f"\0{_ID}={value}\0".encode()
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in b"\0" + path.read_bytes():
                pids.append(int(path.parent.name))
        except OSError:
            continue
    return pids


@dataclass
class Killed:
    """A plan on a testbed that is up; `where` are options of `rocelab run`."""

    nodes: Sequence[Node]
    plan: Path
    out: Path
    where: tuple[str, ...]
    seconds: float = 0.0
    """How long the undisturbed run took."""
    cells: dict[str, set[str]] = field(default_factory=dict)
    """Files of each cell of the undisturbed run."""
    counted: set[tuple[str, ...]] = field(default_factory=set)
    """What the undisturbed run counted, by all but the value."""
    before: list[str] = field(default_factory=list)

    def traces(self) -> list[str]:
        """What is on the machines that a run could have left."""
        return [
            machine.root.run(("sh", "-c", _TRACES), check=False).stdout
            for machine in machines(self.nodes)
        ]

    def run_whole(self) -> None:
        """Run the plan to its end, and remember what it gives."""
        self.before = self.traces()
        began = time.monotonic()
        done = self._command("--out", str(self.out / "whole"), str(self.plan))
        self.seconds = time.monotonic() - began
        assert done.returncode == 0, done.stderr
        (run,) = (self.out / "whole").iterdir()
        self.cells = {name: files(run / "cells" / name) for name in cells(run)}
        self.counted = set(counts(run))
        (transport,) = {key[0] for key in self.counted}
        assert {key[-2:] for key in self.counted} >= expected(transport).keys()
        self.complete(run)

    def seconds_of(self, tool: str) -> float:
        """How long the first cell of a tool took in the undisturbed run."""
        return self._cell_seconds(next(name for name in self.cells if name.startswith(f"{tool}-")))

    def seconds_left(self, run: Path | None) -> float:
        """How long a run that is continued takes, by the undisturbed run's time."""
        names = good_cells(run) if run else []
        return self.seconds - sum(self._cell_seconds(name) for name in names)

    def _cell_seconds(self, name: str) -> float:
        (run,) = (self.out / "whole").iterdir()
        record = json.loads((run / "cells" / name / "cell.json").read_text())
        began, ended = (datetime.fromisoformat(record[key]) for key in ("started", "ended"))
        return max(1.0, (ended - began).total_seconds())

    @contextmanager
    def start(
        self,
        name: str,
        *,
        out: Path | None = None,
        resume: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Run]:
        """Start the plan in a folder of `out`, or continue a run; on exit none of it is left."""
        value = f"{os.getpid()}-{name}"
        out = resume.parent if resume else out or self.out / name
        seconds = self.seconds_left(resume)
        words = ["--resume", str(resume)] if resume else ["--out", str(out), str(self.plan)]
        # a short path: sockets are made there
        temporary = Path(tempfile.mkdtemp(prefix="k"))
        with (self.out / f"{name}.err").open("w") as errors:
            process = subprocess.Popen(
                [*_ROCELAB, "run", *self.where, *words],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, _ID: value, "TMPDIR": str(temporary)} | dict(environment or {}),
                start_new_session=True,
            )
        run = Run(self, name, process, value, out, temporary, seconds, time.time())
        try:
            yield run
        finally:
            for pid in local_processes(value):
                os.kill(pid, signal.SIGKILL)
            process.wait()
            shutil.rmtree(temporary, ignore_errors=True)

    def _command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_ROCELAB, "run", *self.where, *words],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def finish(self, run: Path) -> None:
        """Continue a run until it is complete."""
        done = self._command("--resume", str(run))
        assert done.returncode == 0, done.stderr
        assert json.loads((run / "run.json").read_text())["status"] == "complete"

    def resume(self, run: Path) -> None:
        """Continue a run; it completes, and counts what it should."""
        self.finish(run)
        self.complete(run)

    def again(self, out: Path) -> None:
        """Run the plan again, with the same result."""
        done = self._command("--out", str(out), str(self.plan))
        assert done.returncode == 0, done.stderr
        (run,) = out.iterdir()
        self.complete(run)

    def complete(self, run: Path) -> None:
        """It has what the undisturbed run has, and counts exactly the plan's messages.

        A machine that is not scheduled for a second (qp_timeout) lets a timer of the other one
        expire. The driver counts what it sends again then, and packets may be more.
        """
        assert json.loads((run / "run.json").read_text())["status"] == "complete"
        assert {name: files(run / "cells" / name) for name in cells(run)} == self.cells
        now = counts(run)
        again = retransmissions(run)
        assert now.keys() >= self.counted if again else now.keys() == self.counted
        for key, value in now.items():
            transport, metric, kind = key[0], *key[-2:]
            right = expected(transport).get((metric, kind), 0)
            more = again and metric.startswith(("packets.", "wire."))
            assert value >= right if more else value == right, (
                f"{key}: {value}, expected {right}; sent again: {again}"
            )
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Nothing is on the machines that was not there before the first run."""
        wait_until(
            "the machines are as before",
            lambda: self.traces() == self.before,
            seconds=_LEFT_SECONDS,
            left=self._changes,
        )

    def _changes(self) -> str:
        """What is on the machines, or no longer there."""
        pairs = zip(self.traces(), self.before, strict=True)
        return str([sorted({*now.splitlines()} ^ {*then.splitlines()}) for now, then in pairs])


_ROCELAB = (sys.executable, "-m", "rocelab")


@dataclass(frozen=True)
class Run:
    """A run that is to be disturbed."""

    whole: Killed
    name: str
    process: subprocess.Popen[bytes]
    value: str
    out: Path
    temporary: Path
    seconds: float
    """How long it takes if nothing disturbs it."""
    began: float
    """When it was started, in seconds since the epoch."""

    @property
    def errors(self) -> str:
        """What it printed so far on stderr."""
        return (self.whole.out / f"{self.name}.err").read_text(errors="replace")

    @property
    def folder(self) -> Path | None:
        """The run folder, if the run came so far."""
        folders = list(self.out.glob("*-kills")) if self.out.exists() else []
        return folders[0] if folders else None

    def at(self, share: float, *, within: str = "") -> bool:
        """Wait for this share of the time it takes; return whether it still runs.

        With `within`, a share of the time of that tool's first cell, and since its beginning.
        """
        seconds = self.seconds
        if within:
            seconds = self.whole.seconds_of(within)
            wait_until(f"a cell of {within}", lambda: self._measures(within), seconds=600)
        try:
            self.process.wait(share * seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def _measures(self, tool: str) -> bool:
        if self.process.poll() is not None:
            return True
        folders = (self.folder / "cells").glob(f"*{tool}-*") if self.folder is not None else ()
        # not what an earlier command began
        return any(path.stat().st_ctime > self.began for path in folders)

    def wait_for_end(self, *codes: int, seconds: float = 600) -> None:
        """Wait until the run ends by itself, with one of these exit codes, and says why."""
        assert self.process.wait(seconds) in codes, self.errors
        assert "Traceback" not in self.errors, self.errors

    def interrupt(self, signum: signal.Signals) -> None:
        """End it by a signal; it says which one ended it, and what it kept."""
        before = self._state()
        self.process.send_signal(signum)
        measured = self.folder is not None and cells(self.folder) == sorted(self.whole.cells)
        self.process.wait(_LEFT_SECONDS)
        if self.process.returncode == ExitCode.OK:
            assert measured, f"it ignored {signum.name}"
            return  # it had just ended
        assert self.process.returncode == 128 + signum, self.errors
        assert self.errors.count(f"interrupted by {signum.name}") == 1, self.errors
        assert "Traceback" not in self.errors, self.errors
        # `complete`: the signal came while the report was written
        allowed: set[tuple[str, str] | None] = {("interrupted", signum.name), ("complete", "")}
        if self.folder is None or f"run {self.folder.name}" not in self.errors:
            allowed |= {None, before, ("running", "")}
        assert self._state() in allowed

    def _state(self) -> tuple[str, str] | None:
        """The status in run.json and its reason, if the run came so far."""
        if self.folder is None or not (self.folder / "run.json").exists():
            return None
        meta = json.loads((self.folder / "run.json").read_text())
        return meta["status"], meta["reason"]

    def check_nothing_left(self) -> None:
        """Wait until the run has ended, and only its folder is left: nothing else, anywhere."""
        self.process.wait(_LEFT_SECONDS)
        wait_until(
            "no process here",
            lambda: not self.processes(),
            seconds=_LEFT_SECONDS,
            left=self.process_list,
        )
        for machine in machines(self.whole.nodes):
            root = machine.root
            wait_until(
                f"the lease on {machine.name} ends",
                lambda root=root: root.run(("test", "-e", lease.FOLDER), check=False).returncode,  # type: ignore[misc]
                seconds=_LEFT_SECONDS,
            )
            wait_until(
                f"no process on {machine.name}",
                lambda root=root: not root.run(("sh", "-c", _PROCESSES), check=False).stdout,  # type: ignore[misc]
                seconds=_LEFT_SECONDS,
            )
        self.whole.check_unchanged()
        assert not list(self.temporary.iterdir())

    def processes(self) -> list[int]:
        """Its processes on this machine."""
        return local_processes(self.value)

    def process_list(self) -> str:
        """Its processes on this machine, with their command lines, states and parents."""
        pids = ",".join(map(str, self.processes()))
        if not pids:
            return ""
        words = ("ps", "-o", "pid,ppid,stat,wchan:20,args", "-ww", "-p", pids)
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    def check_whole_cells(self) -> int:
        """Each finished cell has all its files and is proven; return their number."""
        if self.folder is None:
            return 0
        for name in good_cells(self.folder):
            path = self.folder / "cells" / name
            assert files(path) == self.whole.cells[name], name
            record = json.loads((path / "cell.json").read_text())
            assert all(step["proof"]["ok"] for step in record["steps"])
        return len(cells(self.folder))

    def completes(self) -> None:
        """Resume it, or run it again if it had not begun to measure."""
        if self.folder is not None:
            self.whole.resume(self.folder)
        else:
            self.whole.again(self.out)


def cells(run: Path) -> list[str]:
    """The names of the finished cells."""
    records = (run / "cells").glob("*/cell.json") if (run / "cells").exists() else []
    return sorted(path.parent.name for path in records if not path.parent.name.startswith("."))


def good_cells(run: Path) -> list[str]:
    """The names of the finished cells that did not fail."""
    records = {name: run / "cells" / name / "cell.json" for name in cells(run)}
    return [name for name, at in records.items() if json.loads(at.read_text())["status"] == "ok"]


def files(cell: Path) -> set[str]:
    """The names of a cell's files."""
    return {str(path.relative_to(cell)) for path in cell.rglob("*") if path.is_file()}


def counts(run: Path) -> dict[tuple[str, ...], float]:
    """What perftest over a lossless link counts the same each time, unlike TCP, ARP and MPI."""
    frame = results_table.load(run).filter(
        pl.col("metric").is_in(["latency.samples", "wire.frames", "probe.lost"])
        | pl.col("metric").str.contains(r"^packets\.(tx|rx|done)$"),
        pl.col("tool") == "perftest",
        ~pl.col("kind").is_in(["tcp", "other"]),
    )
    keys = ("transport", "repetition", "size", "node", "metric", "kind")
    return {
        tuple(str(row[key]) for key in keys): row["value"] for row in frame.iter_rows(named=True)
    }


def retransmissions(run: Path) -> dict[str, float]:
    """The drivers' counters of what is sent again, and why, that are not 0 in a run."""
    frame = results_table.load(run).filter(
        pl.col("metric").is_in([f"driver.{name}" for name in _SENT_AGAIN]),
        pl.col("tool") == "perftest",
        pl.col("value") > 0,
    )
    return dict(frame.group_by("metric").agg(pl.col("value").sum()).iter_rows())
