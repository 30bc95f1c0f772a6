# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that is ended or disturbed leaves nothing, keeps whole cells, and can be completed.

The moments are random and seeded: one of each kind, or as many as ROCELAB_TEST_KILLS says. `-rP`
prints what each one met. `make test` ends a run by one signal on each kind of machine; the long
tests have every signal on each.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

import disturbances
import ssh_inventory
import vethlab
from killed_run import Killed, Run, plan_text
from polling import wait_until
from rocelab.errors import ExitCode
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node.prepare_node import add_device, install_probes, prepare, remove_device
from rocelab.testbed.qemu import bring_up
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from vmlab import LINE, MTU

KILLS = int(os.environ.get("ROCELAB_TEST_KILLS", "1"))
SUSPEND_SECONDS = float(os.environ.get("ROCELAB_TEST_SUSPEND", "5"))
CUT_SECONDS = 5
SEED = int(os.environ.get("ROCELAB_TEST_SEED", "626"))
Kind = TypeVar("Kind")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)


def by_signals(short: signal.Signals) -> pytest.MarkDecorator:
    """Parametrize a test with the one signal of `make test`, and with all of them."""
    every = pytest.param(SIGNALS, id="every", marks=pytest.mark.long)
    return pytest.mark.parametrize("signals", [pytest.param((short,), id=short.name), every])


def moments(what: str, kinds: Sequence[Kind]) -> list[tuple[float, Kind]]:
    """KILLS of each kind in any order, each with the share of a run's time at which it comes."""
    chosen = random.Random(f"{SEED} {what}")
    shuffled = [*kinds] * KILLS
    chosen.shuffle(shuffled)
    return [(chosen.uniform(0.05, 0.95), kind) for kind in shuffled]


def shares(what: str) -> list[float]:
    """Shares of a run's time, at which it is disturbed."""
    return [share for share, _ in moments(what, [what])]


def name_of(request: pytest.FixtureRequest) -> str:
    """The test's name as a folder."""
    return str(request.node.name).translate({ord(each): "-" for each in "[]."})


def killed_again_and_again(
    whole: Killed,
    what: str,
    signals: Sequence[signal.Signals],
    request: pytest.FixtureRequest,
    *,
    within: str = "",
) -> None:
    """End a run by signals, and continue it after each; then it completes.

    A run that ended before its signal came has to be complete, and another one follows.
    """
    folder: Path | None = None
    for number, (share, signum) in enumerate(moments(what, signals)):
        with whole.start(f"{name_of(request)}-{number}", resume=folder) as run:
            met = f"{share:.2f} {within} of {run.seconds:.0f} s"
            if not run.at(share, within=within):
                met += ", which had ended"
            elif signum == signal.SIGKILL:
                run.process.kill()
            else:
                run.interrupt(signum)
            run.check_nothing_left()
        kept = run.check_whole_cells()
        print(f"{signum.name} at {met}, {run.errors.splitlines()[-1:]}: {kept} cells kept")
        folder = run.folder
        if run.process.returncode == ExitCode.OK:
            assert folder is not None
            whole.complete(folder)
            folder = None
        else:
            assert run.process.returncode in {-signal.SIGKILL, 128 + signum}, run.errors
    if folder is not None:
        whole.resume(folder)
    else:
        whole.again(whole.out / f"{name_of(request)}-last")


@pytest.fixture(scope="module")
def on_qemu(shared_testbed: QemuTestbed, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Two machines, with perftest and MPI."""
    out = tmp_path_factory.mktemp("qemu")
    for node in shared_testbed.nodes:
        install_probes(node, [artifacts.mpibench(LINE)])
    (out / "plan.toml").write_text(plan_text("qemu"))
    where = ("--name", shared_testbed.spec.name)
    whole = Killed(shared_testbed.nodes, out / "plan.toml", out, where)
    whole.run_whole()
    return whole


@pytest.mark.usefixtures("testbed")
@pytest.mark.parametrize("within", [pytest.param("", marks=pytest.mark.long), "mpibench"])
@by_signals(signal.SIGKILL)
def test_a_run_on_machines_of_ours(
    on_qemu: Killed, signals: Sequence[signal.Signals], within: str, request: pytest.FixtureRequest
) -> None:
    """At any moment, and while ranks run, or their daemons; `make test` has the latter."""
    killed_again_and_again(on_qemu, f"qemu {within}", signals, request, within=within)


@pytest.mark.long
def test_mpirun_is_killed(
    testbed: QemuTestbed, on_qemu: Killed, request: pytest.FixtureRequest
) -> None:
    """With its daemon, so that neither can remove its temporary folder; the cell fails."""
    first, second = testbed.nodes
    with on_qemu.start(name_of(request)) as run:
        wait_until(
            "a daemon of mpirun",
            lambda: (
                second.run(("pkill", "-KILL", "-x", "prted|orted"), check=False).returncode == 0
            ),
        )
        first.run(("pkill", "-KILL", "-x", "prterun|mpirun|orterun"), check=False)
        run.wait_for_end(ExitCode.CELL)
        run.check_nothing_left()
    run.completes()


def disturb(run: Run, disturbing: Mapping[str, Callable[[], None]], what: str) -> None:
    """Disturb a run at random moments of its time, KILLS times in each way."""
    begun = 0.0
    for share, kind in sorted(moments(what, [*disturbing])):
        if not run.at(share - begun):
            print(f"{kind} at {share:.2f}: the run had ended")
            return
        print(f"{kind} at {share:.2f}, {run.errors.splitlines()[-1:]}")
        disturbing[kind]()
        begun = share


def pulled(testbed: QemuTestbed, link: str, run: Run) -> None:
    """Take the cable of n2's card out for some seconds, or until the run ends."""
    with disturbances.cut(testbed, "n2", link), suppress(subprocess.TimeoutExpired):
        run.process.wait(CUT_SECONDS)


@pytest.mark.long
def test_disturbed_where_nothing_is_lost(
    testbed: QemuTestbed, on_qemu: Killed, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The control network is cut; the clock of the analyst's machine is set back an hour."""
    clock = disturbances.WallClock(tmp_path)
    hours = 0

    def set_back() -> None:
        nonlocal hours
        hours += 1
        clock.shift(-3600 * hours)
        assert clock.now() < time.time() - 3500 * hours

    with on_qemu.start(name_of(request), environment=clock.environment) as run:
        ways = {"control network": lambda: pulled(testbed, "ctl", run), "clock": set_back}
        disturb(run, ways, "nothing is lost")
        run.wait_for_end(ExitCode.OK)
        run.check_nothing_left()
    assert run.folder is not None
    on_qemu.complete(run.folder)
    subprocess.run((sys.executable, "-m", "rocelab", "report", str(run.folder)), check=True)


def test_disturbed_where_a_cell_may_fail(
    testbed: QemuTestbed, on_qemu: Killed, request: pytest.FixtureRequest
) -> None:
    """The data link is cut; the analyst's machine sleeps, with the virtual machines on it.

    Packets are sent again, or the cell fails, and no number is wrong. ROCELAB_TEST_SUSPEND says how
    many seconds it sleeps.
    """
    machines = [disturbances.qemu_of(testbed, name) for name in ("n1", "n2")]
    with (
        disturbances.no_watchdogs(testbed.nodes),
        on_qemu.start(name_of(request)) as run,
    ):
        ways = {
            "data link": lambda: pulled(testbed, "data", run),
            "sleep": lambda: disturbances.suspend(
                [*run.processes(), *machines], seconds=SUSPEND_SECONDS
            ),
        }
        disturb(run, ways, "a cell may fail")
        run.wait_for_end(ExitCode.OK, ExitCode.CELL)
        run.check_nothing_left()
    print(f"exit code {run.process.returncode}, {run.check_whole_cells()} cells kept")
    run.completes()


@pytest.mark.long
@pytest.mark.parametrize("share", shares("lost node"))
def test_a_node_is_cut_off_for_good(
    testbed: QemuTestbed, on_qemu: Killed, share: float, request: pytest.FixtureRequest
) -> None:
    """The run ends after ssh's limits; what it left there goes when the node is back."""
    with on_qemu.start(name_of(request)) as run:
        run.at(share)
        with disturbances.cut(testbed, "n2", "ctl"):
            run.wait_for_end(ExitCode.OK, ExitCode.CELL, ExitCode.TESTBED, seconds=600)
        run.check_nothing_left()
    print(f"cut off at {share:.2f}: exit code {run.process.returncode}")
    run.check_whole_cells()
    run.completes()


@pytest.mark.long
def test_the_disk_fills(
    testbed: QemuTestbed, on_qemu: Killed, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The run stops and says why; finished cells are whole; it continues when there is room."""
    del testbed
    folder: Path | None = None
    with disturbances.small_disk(tmp_path / "disk", megabytes=64) as disk:
        for number, share in enumerate(shares("disk")):
            name = f"{name_of(request)}-{number}"
            with on_qemu.start(name, out=disk / name, resume=folder) as run:
                run.at(share)
                with disturbances.fill(disk):
                    run.wait_for_end(ExitCode.OK, ExitCode.MISSING, ExitCode.TESTBED, ExitCode.CELL)
                    run.check_nothing_left()
                    kept = run.check_whole_cells()
            said = " ".join(run.errors.split())
            code = run.process.returncode
            print(f"full at {share:.2f}: {kept} cells kept, exit code {code}, {said[-200:]}")
            folder = run.folder
            if folder is not None and code == ExitCode.OK:
                on_qemu.complete(folder)
                folder = None
            elif folder is not None:
                advice = ["run --resume"] + ["report"] * (kept == len(on_qemu.cells))
                assert any(f"rocelab {words} {folder}" in said for words in advice)
        if folder is not None:
            on_qemu.resume(folder)
        else:
            on_qemu.again(disk / "last")


def test_a_machine_is_killed(
    testbed: QemuTestbed, on_qemu: Killed, request: pytest.FixtureRequest
) -> None:
    """The run stops and leaves nothing on the other one; another testbed continues it."""
    del testbed
    folder: Path | None = None
    for number, share in enumerate(shares("QEMU")):
        dying = bring_up.up(
            f"dying-{os.getpid()}", line=LINE, mtu=MTU, emulation="tcg", lifeline=True
        )
        try:
            prepare(dying.nodes, artifacts.driver(LINE), artifacts.probes(LINE))
            for node in dying.nodes:
                install_probes(node, [artifacts.mpibench(LINE)])
            dying.state.mark_prepared()
            left = replace(on_qemu, nodes=dying.nodes[:1], where=("--name", dying.spec.name))
            left.before = left.traces()
            with left.start(f"{name_of(request)}-{number}", resume=folder) as run:
                run.at(share)
                os.kill(disturbances.qemu_of(dying, "n2"), signal.SIGKILL)
                # CELL: its benchmark's time is over before the node is missed
                run.wait_for_end(ExitCode.OK, ExitCode.TESTBED, ExitCode.CELL)
                run.check_nothing_left()
            code, said = run.process.returncode, run.errors.splitlines()[-3:]
            kept = run.check_whole_cells()
            print(f"n2 killed at {share:.2f}: exit code {code}, {kept} cells kept, {said}")
        finally:
            dying.down()
        folder = run.folder
        if folder is not None and code == ExitCode.OK:
            on_qemu.complete(folder)
            folder = None
    if folder is not None:
        on_qemu.resume(folder)


@pytest.fixture(scope="module", params=["rxe-v2", pytest.param("rxe-v1", marks=pytest.mark.long)])
def on_hosts(
    request: pytest.FixtureRequest,
    shared_testbed: QemuTestbed,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Killed]:
    """Two hosts of an inventory; a run adds a device on the second, and has to remove it.

    For rxe-v1 it replaces the first host's device, and has to restore it.
    """
    out = tmp_path_factory.mktemp("hosts")
    for node in shared_testbed.nodes:
        install_probes(node, [artifacts.mpibench(LINE), artifacts.probe(linktap.TAP, LINE)])
    named = dict(zip(("left", "right"), shared_testbed.nodes, strict=True))
    inventory = ssh_inventory.write(out / "hosts.toml", named)
    mpi = request.param == "rxe-v1"
    (out / "plan.toml").write_text(plan_text("ssh", transport=request.param, mpi=mpi))
    second = shared_testbed.nodes[1]
    remove_device(second)
    try:
        whole = Killed(
            shared_testbed.nodes, out / "plan.toml", out, ("--inventory", str(inventory))
        )
        whole.run_whole()
        yield whole
    finally:
        add_device(second)


@pytest.mark.usefixtures("testbed")
@by_signals(signal.SIGTERM)
def test_a_run_on_hosts_of_your_own(
    on_hosts: Killed, signals: Sequence[signal.Signals], request: pytest.FixtureRequest
) -> None:
    """With perftest, and MPI in the long test; the second host has no device of ours before."""
    killed_again_and_again(on_hosts, "ssh", signals, request)


@pytest.fixture(scope="module")
def on_veth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    """Both ends on one machine."""
    out = tmp_path_factory.mktemp("veth")
    with vethlab.boot(name="killed", icount=False) as pair:
        install_probes(pair.host.nodes[0], [artifacts.probe("rxecpu", LINE)])
        (out / "plan.toml").write_text(plan_text("veth", mpi=False))
        where = ("--name", pair.spec.name)
        whole = Killed(pair.nodes, out / "plan.toml", out, where)
        whole.run_whole()
        yield whole


@by_signals(signal.SIGHUP)
def test_a_run_on_one_machine(
    on_veth: Killed, signals: Sequence[signal.Signals], request: pytest.FixtureRequest
) -> None:
    """Its captures run on the machine itself."""
    killed_again_and_again(on_veth, "veth", signals, request)
