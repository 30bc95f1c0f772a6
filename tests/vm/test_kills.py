# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that is ended or disturbed leaves nothing, keeps whole cells, and can be completed.

The moments are random and seeded: one each, or as many as ROCELAB_TEST_KILLS says. `-rP` prints
what each one met.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import disturbances
import ssh_inventory
import vethlab
from killed_run import MESSAGES, MPI, PLAN, Killed
from polling import wait_until
from rocelab.errors import ExitCode
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node.prepare_node import add_device, install_probes, prepare, remove_device
from rocelab.testbed.qemu import qemu_testbed as qemu
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from vmlab import LINE, MTU

KILLS = int(os.environ.get("ROCELAB_TEST_KILLS", "1"))
SUSPEND_SECONDS = float(os.environ.get("ROCELAB_TEST_SUSPEND", "5"))
CUT_SECONDS = 5
SEED = int(os.environ.get("ROCELAB_TEST_SEED", "626"))


def moments(what: str) -> list[float]:
    """Shares of a run's time, at which it is disturbed."""
    chosen = random.Random(f"{SEED} {what}")
    return [chosen.uniform(0.05, 0.95) for _ in range(KILLS)]


def each_signal(provider: str) -> pytest.MarkDecorator:
    """Parameters `share` and `signum`; `make test` handles signals on two machines only."""
    return pytest.mark.parametrize(
        ("share", "signum"),
        [
            pytest.param(share, signum, id=f"{signum.name}-{share:.2f}", marks=marks)
            for signum, marks in (
                (signal.SIGKILL, ()),
                (signal.SIGTERM, pytest.mark.long),
                (signal.SIGHUP, pytest.mark.long),
            )
            for share in moments(f"{provider} {signum.name}")
        ],
    )


def name_of(request: pytest.FixtureRequest) -> str:
    """The test's name as a folder."""
    return str(request.node.name).translate({ord(each): "-" for each in "[]."})


def kill(
    whole: Killed,
    share: float,
    request: pytest.FixtureRequest,
    signum: signal.Signals = signal.SIGKILL,
    *,
    within: str = "",
) -> None:
    """End a run by a signal at a share of its time, and complete it."""
    with whole.started(name_of(request)) as run:
        run.at(share, within=within)
        met = run.said.splitlines()[-1:]
        if signum == signal.SIGKILL:
            run.process.kill()
        else:
            run.interrupted(signum)
        run.left_nothing()
    kept = run.kept_whole_cells()
    print(f"{signum.name} at {share:.2f} {within}, {met}: {kept} cells kept")
    run.completes()


@pytest.fixture(scope="module")
def on_qemu(shared_testbed: QemuTestbed, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Two machines, with perftest and MPI."""
    out = tmp_path_factory.mktemp("qemu")
    for node in shared_testbed.nodes:
        install_probes(node, [artifacts.mpibench(LINE)])
    (out / "plan.toml").write_text(PLAN.format(messages=MESSAGES, provider="qemu", mpi=MPI))
    where = ("--name", shared_testbed.spec.name)
    whole = Killed(shared_testbed.nodes, out / "plan.toml", out, where)
    whole.undisturbed()
    return whole


@pytest.mark.usefixtures("testbed")
@pytest.mark.parametrize(
    ("share", "signum", "within"),
    [
        pytest.param(share, signum, within, id=f"{what.replace(' ', '-')}-{share:.2f}", marks=marks)
        for what, signum, within, marks in (
            ("qemu SIGKILL", signal.SIGKILL, "", ()),
            ("SIGTERM", signal.SIGTERM, "", ()),
            # handled as SIGTERM is
            ("SIGHUP", signal.SIGHUP, "", pytest.mark.long),
            # while ranks run, or their daemons
            ("mpi SIGKILL", signal.SIGKILL, "mpibench", ()),
            ("mpi SIGTERM", signal.SIGTERM, "mpibench", pytest.mark.long),
            ("mpi SIGHUP", signal.SIGHUP, "mpibench", pytest.mark.long),
        )
        for share in moments(what)
    ],
)
def test_a_run_on_machines_of_ours(
    on_qemu: Killed,
    share: float,
    signum: signal.Signals,
    within: str,
    request: pytest.FixtureRequest,
) -> None:
    """A signal that can be handled makes it say what it kept."""
    kill(on_qemu, share, request, signum, within=within)


def test_mpirun_is_killed(
    testbed: QemuTestbed, on_qemu: Killed, request: pytest.FixtureRequest
) -> None:
    """With its daemon, so that neither can remove its temporary folder; the cell fails."""
    first, second = testbed.nodes
    with on_qemu.started(name_of(request)) as run:
        wait_until(
            "a daemon of mpirun",
            lambda: (
                second.run(("pkill", "-KILL", "-x", "prted|orted"), check=False).returncode == 0
            ),
        )
        first.run(("pkill", "-KILL", "-x", "prterun|mpirun|orterun"), check=False)
        run.ended(ExitCode.CELL)
        run.left_nothing()
    run.completes()


@pytest.mark.parametrize("share", moments("data link"))
def test_the_data_link_is_cut(
    testbed: QemuTestbed, on_qemu: Killed, share: float, request: pytest.FixtureRequest
) -> None:
    """For some seconds; the cell fails, or the packets are sent again, and no number is wrong."""
    with on_qemu.started(name_of(request)) as run:
        run.at(share)
        with disturbances.cut(testbed, "n2", "data"), suppress(subprocess.TimeoutExpired):
            run.process.wait(CUT_SECONDS)
        run.ended(ExitCode.OK, ExitCode.CELL)
        run.left_nothing()
    print(f"cut at {share:.2f}: exit code {run.process.returncode}")
    run.kept_whole_cells()
    run.completes()


@pytest.mark.parametrize("share", moments("control network"))
def test_the_control_network_is_cut(
    testbed: QemuTestbed, on_qemu: Killed, share: float, request: pytest.FixtureRequest
) -> None:
    """For some seconds: nothing is lost."""
    with on_qemu.started(name_of(request)) as run:
        run.at(share)
        with disturbances.cut(testbed, "n2", "ctl"), suppress(subprocess.TimeoutExpired):
            run.process.wait(CUT_SECONDS)
        run.ended(ExitCode.OK)
        run.left_nothing()
    assert run.folder is not None
    on_qemu.complete(run.folder)


@pytest.mark.long
@pytest.mark.parametrize("share", moments("lost node"))
def test_a_node_is_cut_off_for_good(
    testbed: QemuTestbed, on_qemu: Killed, share: float, request: pytest.FixtureRequest
) -> None:
    """The run ends after ssh's limits; what it left there goes when the node is back."""
    with on_qemu.started(name_of(request)) as run:
        run.at(share)
        with disturbances.cut(testbed, "n2", "ctl"):
            run.ended(ExitCode.OK, ExitCode.CELL, ExitCode.TESTBED, seconds=600)
        run.left_nothing()
    print(f"cut off at {share:.2f}: exit code {run.process.returncode}")
    run.kept_whole_cells()
    run.completes()


@pytest.mark.parametrize("share", moments("disk"))
def test_the_disk_fills(
    testbed: QemuTestbed,
    on_qemu: Killed,
    share: float,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    """The run stops and says why; finished cells are whole."""
    del testbed
    with (
        disturbances.small_disk(tmp_path / "disk", megabytes=64) as disk,
        on_qemu.started(name_of(request), out=disk) as run,
    ):
        run.at(share)
        with disturbances.filled(disk):
            run.ended(
                *(ExitCode.OK, ExitCode.USAGE, ExitCode.MISSING, ExitCode.TESTBED, ExitCode.CELL)
            )
            run.left_nothing()
            kept = run.kept_whole_cells()
        if run.folder is not None and run.process.returncode != ExitCode.OK:
            assert f"rocelab run --resume {run.folder}" in " ".join(run.said.split())
        last = " ".join(run.said.split())[-200:]
        print(f"full at {share:.2f}: {kept} cells kept, exit code {run.process.returncode}, {last}")
        run.completes()


@pytest.mark.parametrize("share", moments("clock"))
def test_the_clock_is_set_back_an_hour(
    testbed: QemuTestbed,
    on_qemu: Killed,
    share: float,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    """Of the analyst's machine; the run and its report go on."""
    del testbed
    clock = disturbances.WallClock(tmp_path)
    with on_qemu.started(name_of(request), environment=clock.environment) as run:
        run.at(share)
        clock.shift(-3600)
        assert clock.now() < time.time() - 3500
        run.ended(ExitCode.OK)
        run.left_nothing()
    assert run.folder is not None
    on_qemu.complete(run.folder)
    subprocess.run((sys.executable, "-m", "rocelab", "report", str(run.folder)), check=True)


@pytest.mark.parametrize("share", moments("suspend"))
def test_the_analysts_machine_sleeps(
    testbed: QemuTestbed, on_qemu: Killed, share: float, request: pytest.FixtureRequest
) -> None:
    """With the virtual machines on it; ROCELAB_TEST_SUSPEND says how many seconds."""
    machines = [disturbances.qemu_of(testbed, name) for name in ("n1", "n2")]
    with on_qemu.started(name_of(request)) as run:
        run.at(share)
        disturbances.suspend([*run.processes(), *machines], seconds=SUSPEND_SECONDS)
        run.ended(ExitCode.OK, ExitCode.CELL)
        run.left_nothing()
    print(f"slept at {share:.2f}: exit code {run.process.returncode}")
    run.kept_whole_cells()
    assert run.folder is not None
    on_qemu.resume(run.folder)


@pytest.mark.parametrize("share", moments("QEMU"))
def test_a_machine_is_killed(
    testbed: QemuTestbed, on_qemu: Killed, share: float, request: pytest.FixtureRequest
) -> None:
    """The run stops and leaves nothing on the other one; another testbed completes it."""
    del testbed
    dying = qemu.up(f"dying-{os.getpid()}", line=LINE, mtu=MTU, emulation="tcg", lifeline=True)
    try:
        prepare(dying.nodes, artifacts.driver(LINE), artifacts.probes(LINE))
        for node in dying.nodes:
            install_probes(node, [artifacts.mpibench(LINE)])
        dying.state.mark_prepared()
        left = replace(on_qemu, nodes=dying.nodes[:1], where=("--name", dying.spec.name))
        left.before = left.traces()
        with left.started(name_of(request)) as run:
            run.at(share)
            os.kill(disturbances.qemu_of(dying, "n2"), signal.SIGKILL)
            run.ended(ExitCode.OK, ExitCode.TESTBED)
            run.left_nothing()
        said = run.said.splitlines()[-3:]
        print(f"n2 killed at {share:.2f}: exit code {run.process.returncode}, {said}")
        run.kept_whole_cells()
    finally:
        dying.down()
    if run.folder is not None:
        on_qemu.resume(run.folder)


@pytest.fixture(scope="module")
def on_hosts(
    shared_testbed: QemuTestbed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Killed]:
    """Two hosts of an inventory; a run adds a device on the second, and has to remove it."""
    out = tmp_path_factory.mktemp("hosts")
    for node in shared_testbed.nodes:
        install_probes(node, [artifacts.mpibench(LINE), artifacts.probe(linktap.TAP, LINE)])
    named = dict(zip(("left", "right"), shared_testbed.nodes, strict=True))
    inventory = ssh_inventory.write(out / "hosts.toml", named)
    (out / "plan.toml").write_text(PLAN.format(messages=MESSAGES, provider="ssh", mpi=MPI))
    second = shared_testbed.nodes[1]
    remove_device(second)
    try:
        whole = Killed(
            shared_testbed.nodes, out / "plan.toml", out, ("--inventory", str(inventory))
        )
        whole.undisturbed()
        yield whole
    finally:
        add_device(second)


@pytest.mark.usefixtures("testbed")
@each_signal("ssh")
def test_a_run_on_hosts_of_your_own(
    on_hosts: Killed, share: float, signum: signal.Signals, request: pytest.FixtureRequest
) -> None:
    """With perftest and MPI; the second host has no device of ours before."""
    kill(on_hosts, share, request, signum)


@pytest.fixture(scope="module")
def on_veth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    """Both ends on one machine."""
    out = tmp_path_factory.mktemp("veth")
    with vethlab.boot(name="killed", icount=False) as pair:
        install_probes(pair.host.nodes[0], [artifacts.probe("rxecpu", LINE)])
        (out / "plan.toml").write_text(PLAN.format(messages=MESSAGES, provider="veth", mpi=""))
        where = ("--name", pair.spec.name)
        whole = Killed(pair.nodes, out / "plan.toml", out, where)
        whole.undisturbed()
        yield whole


@each_signal("veth")
def test_a_run_on_one_machine(
    on_veth: Killed, share: float, signum: signal.Signals, request: pytest.FixtureRequest
) -> None:
    """Its captures run on the machine itself."""
    kill(on_veth, share, request, signum)
