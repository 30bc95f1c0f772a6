# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze --dask`: two worker processes give what one process gives."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from corpus import CAPTURES, SAMPLES
from polling import wait_until
from requirements import missing
from rocelab.capture import cluster
from rocelab.cli.analyze import analyze
from rocelab.errors import ExitCode, MissingError, UsageError

pytestmark = pytest.mark.slow

SKEWED = ["case-skew-requests.pcap", "case-skew-responses.pcap"]
"""Two taps of one connection; the clock of one is wrong."""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(analyze, [str(word) for word in words])


def need_distributed() -> None:
    if not find_spec("distributed"):
        missing("the Python package distributed is not installed")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    need_distributed()
    from distributed import LocalCluster

    # any port: the tests of this file may run twice at a time
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as local:
        yield local.scheduler_address


def compare(scheduler: str, *words: str | Path, code: ExitCode) -> Result:
    """Run with and without workers; demand the same bytes and exit code."""
    alone = run(*words)
    spread = run("--dask", scheduler, *words)
    assert spread.stdout == alone.stdout
    assert spread.stderr == alone.stderr
    assert str(spread.exception) == str(alone.exception)
    assert spread.exit_code == alone.exit_code
    if not isinstance(alone.exception, UsageError):
        assert alone.exit_code == code
    return spread


@pytest.mark.parametrize("form", [["--json"], ["--csv"], []], ids=["json", "csv", "text"])
def test_captures_apart(scheduler: str, form: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CAPTURES)
    names = ["ack-unsent.pcap", "fault-corrupt.pcap", *SKEWED]
    compare(scheduler, *form, *names, code=ExitCode.FINDINGS)


def test_merged_captures_are_one_with_clocks_aligned(scheduler: str) -> None:
    names = [CAPTURES / name for name in SKEWED]
    done = compare(scheduler, "--json", "--merge", *names, code=ExitCode.OK)
    result = json.loads(done.stdout)
    assert result["clock_offsets_ns"] == [0, 1001]
    assert len(result["connections"]) == 1


def test_a_merge_of_all_samples(scheduler: str) -> None:
    """Every kind of finding, error and link layer; more captures than are read in large pieces."""
    names = [CAPTURES / name for name in SAMPLES]
    forms: list[list[str]] = [["--json"], ["--json", "--no-icrc"], []]
    for form in forms:
        compare(scheduler, *form, "--merge", *names, code=ExitCode.FINDINGS)


def test_a_merge_verifies_on_every_worker_and_leaves_nothing(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    seen: set[str] = set()

    def most(excerpts: list[cluster.Excerpt]) -> str:
        seen.update(excerpt.worker for excerpt in excerpts)
        return excerpts[0].worker

    monkeypatch.setattr(cluster, "_most_bytes", most)
    names = [CAPTURES / name for name in SAMPLES]
    compare(scheduler, "--json", "--merge", *names, code=ExitCode.FINDINGS)
    with Client(scheduler, set_as_default=False) as client:
        folders = client.run(lambda dask_worker: os.listdir(dask_worker.local_directory))
    assert seen == set(folders)
    assert not [name for names in folders.values() for name in names if "rocelab" in name]


@pytest.mark.parametrize("merge", [["--merge"], []], ids=["merged", "apart"])
def test_each_worker_has_a_capture_that_the_other_cannot_open(
    scheduler: str, merge: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on hosts with disks of their own: what the path means depends on the process."""
    from distributed import Client

    # several blocks a file
    with Client(scheduler, set_as_default=False) as client:
        client.run(setattr, cluster, "_BLOCK", 1000)
        # no excerpt is: they all go from worker to worker
        client.run(setattr, cluster, "_is_here", operator.not_)
        for worker, name in zip(sorted(client.run(os.getpid)), SKEWED, strict=True):
            disk = tmp_path / name.removesuffix(".pcap")
            disk.mkdir()
            shutil.copy(CAPTURES / name, disk)
            client.run(os.chdir, str(disk), workers=[worker])
    monkeypatch.chdir(CAPTURES)
    names = [f"/proc/self/cwd/{name}" for name in SKEWED]
    compare(scheduler, "--json", *merge, *names, code=ExitCode.OK)


def test_a_url_is_read_by_fsspec(scheduler: str) -> None:
    path = CAPTURES / "ack-unsent.pcap"
    alone = run("--json", path)
    remote = run("--json", "--dask", scheduler, path.as_uri())
    assert remote.stdout == alone.stdout.replace(str(path), path.as_uri())
    assert remote.exit_code == alone.exit_code


@pytest.mark.parametrize("merge", [["--merge"], []], ids=["merged", "apart"])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("unheard-of://host/x.pcap", "Protocol not known"),
        ("memory://none.pcap", "FileNotFoundError"),
        ("file:///none/x.pcap", "No such file or directory"),
    ],
    ids=["protocol", "no such object", "no such file"],
)
def test_a_url_that_cannot_be_read_is_named(
    scheduler: str, merge: list[str], url: str, why: str
) -> None:
    good = str(CAPTURES / "ack-unsent.pcap")
    alone = run("--json", "--dask", scheduler, url)
    assert isinstance(alone.exception, UsageError), alone.exception
    assert url in alone.exception.what
    assert why in alone.exception.cause
    several = run("--json", "--dask", scheduler, *merge, url, good)
    if merge:
        assert str(several.exception) == str(alone.exception)
    else:
        assert several.exit_code == ExitCode.USAGE
        assert url in several.stderr
        assert json.loads(several.stdout)["input"]["files"] == [good]


@pytest.fixture
def worker_without_rocelab(tmp_path: Path) -> Iterator[str]:
    """The scheduler of a worker that is installed without rocelab."""
    need_distributed()
    from distributed import Client, LocalCluster

    (tmp_path / "rocelab.py").write_text("raise ImportError('there is no rocelab here')\n")
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as local:
        address = local.scheduler_address
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard"],
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
        )
        try:
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
            yield address
        finally:
            worker.terminate()
            worker.wait(60)


def test_a_worker_without_rocelab_is_named(worker_without_rocelab: str) -> None:
    result = run("--dask", worker_without_rocelab, CAPTURES / "ack-unsent.pcap")
    assert isinstance(result.exception, MissingError), result.exception
    assert "there is no rocelab here" in result.exception.cause
    assert "on every worker" in result.exception.action


@pytest.mark.parametrize("merge", [["--merge"], []], ids=["merged", "apart"])
def test_unusable_captures(scheduler: str, merge: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture")
    words: list[str | Path] = [
        "--json",
        *merge,
        bad,
        tmp_path / "none.pcap",
        CAPTURES / "ack-unsent.pcap",
    ]
    compare(scheduler, *words, code=ExitCode.USAGE)


def address_in(told: Path) -> str:
    """The address in a scheduler's file; empty while the file is not there, or written in part."""
    try:
        return str(json.loads(told.read_text())["address"])
    except (FileNotFoundError, ValueError):
        return ""


@pytest.mark.parametrize("merge", [["--merge"], []], ids=["merged", "apart"])
@pytest.mark.parametrize("ends", ["scheduler", "worker"])
def test_what_is_killed_is_named(ends: str, merge: list[str], tmp_path: Path) -> None:
    """While the worker waits for a server that never answers it.

    It leaves only Dask's own folder, which the next worker removes.
    """
    need_distributed()
    from distributed import Client

    told = tmp_path / "scheduler.json"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    own = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s", "TMPDIR": str(temporary)}
    with contextlib.ExitStack() as running, socket.create_server(("127.0.0.1", 0)) as server:

        def start(*words: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | own,
            )
            running.enter_context(process)
            running.callback(process.kill)
            return process

        scheduler = start(
            "distributed.cli.dask_scheduler",
            *("--host=127.0.0.1", "--port=0", "--no-dashboard", f"--scheduler-file={told}"),
        )
        wait_until("the scheduler has started", lambda: bool(address_in(told)), seconds=60)
        address = address_in(told)
        worker = start("distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard")
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        url = f"ftp://127.0.0.1:{server.getsockname()[1]}/capture"
        command = start("rocelab", "analyze", "--dask", address, *merge, url, url)
        server.settimeout(60)
        with server.accept()[0]:
            (scheduler if ends == "scheduler" else worker).kill()
            told_to_user = command.communicate(timeout=60)[1]
    assert command.returncode == ExitCode.TESTBED, told_to_user
    assert {"scheduler": address, "worker": "has ended before its work"}[ends] in told_to_user
    assert "Traceback" not in told_to_user
    assert os.listdir(temporary) == ["dask-scratch-space"]


def test_no_scheduler_is_an_error_that_says_so() -> None:
    need_distributed()
    import dask

    with socket.socket() as unused, dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        # bound and not listening: nobody else can take the port
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        result = run("--dask", address, CAPTURES / "ack-unsent.pcap")
    assert isinstance(result.exception, UsageError)
    assert address in result.exception.what


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("no-port", "missing port number"),
        ("unknown://127.0.0.1:1", "unknown address scheme"),
        ("tls://127.0.0.1:1", "check your TLS configuration"),
    ],
)
def test_a_useless_address_is_named_at_once(address: str, why: str) -> None:
    need_distributed()
    command = (sys.executable, "-m", "rocelab", "analyze", "--dask", address, __file__)
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == ExitCode.USAGE, ended.stderr
    assert why in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "words",
    [("--html", os.devnull, __file__), ("--parquet", os.devnull, "a"), ("-",), ("--live", "lo")],
    ids=["html", "parquet", "stdin", "live"],
)
def test_what_workers_cannot_do_is_refused(words: tuple[str, ...]) -> None:
    result = run("--dask", "tcp://127.0.0.1:1", *words)
    assert isinstance(result.exception, UsageError)
