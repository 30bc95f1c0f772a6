# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes are loaded once and watch in windows; what goes wrong leaves none behind."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from polling import wait_until
from rocelab.errors import UsageError
from rocelab.measure.probes.loaded_probes import LoadedProbes, ProbeTask
from rocelab.measure.probes.probe_session import ProbeError
from rocelab.measure.probes.programs import programs_of
from rocelab.plans import plan_file
from rocelab.plans.catalog import TESTS
from rocelab.plans.command import UNITS
from rocelab.testbed.node import DataLink, Printed
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection

# notes what it is asked, and answers like ebpf/lib/control.c
_PROBE = """#!/bin/sh
name=${0##*/}
say() { echo "$name: $1" >&2; }
note() { echo "$name $1" >>"$NOTES"; }
echo "$$" >>"$NOTES.pids"
note "loaded $*"
[ ! -e "$NOTES.broken" ] || { echo "no BTF" >&2; exit 1; }
say ready
while read -r verb file; do
    note "$verb${file:+ $file}"
    case "$verb" in
    start)
        [ ! -e "$NOTES.dies" ] || exit 3
        if [ -e "$NOTES.refuses" ]; then
            say "the driver is another"
            say "error: start failed"
        else
            say started
        fi ;;
    hold)
        case "$name" in
        rxedump) say "3 packets" ;;
        *) echo '{"n": 1}' ;;
        esac
        say held ;;
    stop) say stopped ;;
    esac
done
note ended
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the probes note what happens to them."""
    for name in ("rxestat", "rxedump", "rxecpu"):
        (tmp_path / name).write_text(_PROBE)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    return tmp_path / "notes"


@pytest.fixture
def probes(notes: Path) -> Iterator[LoadedProbes]:
    """No process of a probe is there when they are closed."""
    with LoadedProbes() as loaded:
        yield loaded
    pids = notes.with_suffix(".pids")
    for pid in pids.read_text().split() if pids.exists() else ():
        wait_until(f"probe {pid} ends", lambda pid=pid: not Path(f"/proc/{pid}").exists())


def _machine(name: str) -> CommandNode:
    return CommandNode(name, DataLink("", "", "", 0), LocalConnection(is_root=True))


N1, N2 = _machine("n1"), _machine("n2")
STAT = ProbeTask(N1, ("rxestat", "--json"))
CPU = ProbeTask(N1, ("rxecpu", "--json"), file="a b")
DUMP = ProbeTask(N1, ("rxedump",), node="n1", file="x", reports=False)


def test_windows_of_one_loading(probes: LoadedProbes, notes: Path) -> None:
    for _ in range(3):
        with probes.window([STAT]) as printed:
            assert notes.read_text().splitlines()[-1] == "rxestat start"
        assert printed == [Printed('{"n": 1}\n', "")]
        assert notes.read_text().splitlines()[-1] == "rxestat hold"
    probes.close()
    windows = ["rxestat start", "rxestat hold"] * 3
    assert notes.read_text().splitlines() == [
        "rxestat loaded --control --json",
        *windows,
        "rxestat ended",
    ]


def test_each_probe_on_each_machine(probes: LoadedProbes, notes: Path) -> None:
    """All are loaded before the first window begins; a window has those that it names."""
    far = ProbeTask(N2, STAT.argv)
    probes.load([STAT, far, CPU, DUMP])
    assert [line.split()[1] for line in notes.read_text().splitlines()] == ["loaded"] * 4
    with probes.window([STAT, far]) as outer, probes.window([DUMP]) as inner:
        pass
    assert outer == [Printed('{"n": 1}\n', "")] * 2
    assert inner == [Printed("", "rxedump: 3 packets\n")]
    assert notes.read_text().count("loaded") == 4


def test_one_that_a_step_does_not_ask_for_is_detached(probes: LoadedProbes, notes: Path) -> None:
    """Once; one that it asks for may stay attached."""
    with probes.window([STAT]), probes.window([CPU]):
        pass
    probes.detach_others([CPU])
    probes.detach_others([CPU])
    assert [line.split()[:2] for line in notes.read_text().splitlines()[-3:]] == [
        ["rxecpu", "hold"],
        ["rxestat", "hold"],
        ["rxestat", "stop"],
    ]
    with probes.window([STAT]):
        pass
    probes.detach_others([])
    assert sorted(notes.read_text().splitlines()[-2:]) == ["rxecpu stop", "rxestat stop"]


def test_the_testbed_spares_its_waits(notes: Path) -> None:
    """Only while probes detach or end: in a window the kernel's timers are a part of the work."""

    def note(text: str) -> None:
        with notes.open("a") as file:
            file.write(f"{text}\n")

    @contextmanager
    def hurry() -> Iterator[None]:
        note("hurries")
        yield
        note("waits")

    with LoadedProbes(hurry=hurry) as probes:
        with probes.window([STAT]):
            pass
        probes.detach_others([])
    assert notes.read_text().splitlines()[1:] == [
        *("rxestat start", "rxestat hold"),
        *("hurries", "rxestat stop", "waits"),
        *("hurries", "rxestat ended", "waits"),
    ]


def test_what_it_writes_is_private(probes: LoadedProbes, notes: Path, tmp_path: Path) -> None:
    """Nobody can foresee its name, or read it; nothing stays."""
    with probes.window([CPU]):
        begun = notes.read_text().splitlines()[-1]
        assert begun.startswith("rxecpu start /")
        written = Path(begun.removeprefix("rxecpu start "))
        assert re.fullmatch(r"rocelab-probe\.\w{6}/a b", "/".join(written.parts[-2:]))
        assert written.parent.stat().st_mode & 0o777 == 0o700
        written.write_text("stacks")
    probes.fetch(CPU, tmp_path / "fetched")
    assert (tmp_path / "fetched").read_text() == "stacks"
    assert not written.exists()
    probes.close()
    assert not written.parent.exists()


def test_other_options_load_it_again(probes: LoadedProbes, notes: Path) -> None:
    with probes.window([STAT]):
        pass
    with probes.window([ProbeTask(N1, ("rxestat", "--json", "--device", "rxe1"))]):
        pass
    lines = notes.read_text().splitlines()
    assert lines[3:5] == ["rxestat ended", "rxestat loaded --control --json --device rxe1"]


def test_one_that_does_not_load(probes: LoadedProbes, notes: Path) -> None:
    broken = notes.with_suffix(".broken")
    broken.touch()
    with pytest.raises(ProbeError, match="rxestat on n1 did not say 'ready'") as caught:
        probes.load([STAT])
    assert "no BTF" in caught.value.cause
    broken.unlink()
    with probes.window([STAT]) as printed:
        pass
    assert len(printed) == 1


@pytest.mark.parametrize(("how", "said"), [("refuses", "not started"), ("dies", "did not say")])
def test_one_that_does_not_start(probes: LoadedProbes, notes: Path, how: str, said: str) -> None:
    """The next window has it loaded again."""
    trouble = notes.with_suffix(f".{how}")
    trouble.touch()
    with pytest.raises(ProbeError, match=said) as caught, probes.window([STAT]):
        pytest.fail("the window must not begin")
    assert how == "dies" or "the driver is another" in caught.value.cause
    trouble.unlink()
    with probes.window([STAT]) as printed:
        pass
    assert printed == [Printed('{"n": 1}\n', "")]


def test_one_that_died_between(probes: LoadedProbes, notes: Path) -> None:
    with probes.window([STAT]):
        pass
    N1.run(["kill", "-KILL", notes.with_suffix(".pids").read_text().strip()])
    with pytest.raises(ProbeError, match="rxestat on n1"), probes.window([STAT]):
        pytest.fail("the window must not begin")
    with probes.window([STAT]):
        pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_window_that_fails_leaves_none(
    probes: LoadedProbes, notes: Path, error: type[BaseException]
) -> None:
    with pytest.raises(error), probes.window([STAT, CPU]):
        raise error
    pids = notes.with_suffix(".pids").read_text().split()
    assert len(pids) == 2
    for pid in pids:
        wait_until(f"probe {pid} ends", lambda pid=pid: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize("key", TESTS, ids=" ".join)
def test_every_benchmark_has_programs(key: tuple[str, str]) -> None:
    tool, test = key
    for transport, sizes in product(("tcp", "rxe-v2"), ("sizes = [1024]", "")):
        text = f'[plan]\nname = "p"\ntransports = ["{transport}"]\n[[benchmark]]\n'
        text += f'tool = "{tool}"\ntest = "{test}"\n{sizes}\n'
        if tool == "command":
            unit = "" if test == "time" else f'json = "x"\nunit = "{next(iter(UNITS[test]))}"\n'
            text += f'[benchmark.command]\nclient = ["/bin/my,client"]\n{unit}'
        with suppress(UsageError):
            programs = programs_of(plan_file.from_toml(text, "p.toml").cells())
            assert programs
            assert all(name and "/" not in name for name in programs)
            return
    pytest.fail("no such plan")


def test_programs_of_a_plan() -> None:
    plan = plan_file.from_toml(
        '[plan]\nname = "p"\ntransports = ["rxe-v2"]\n'
        '[[benchmark]]\ntool = "perftest"\ntest = "write_lat"\nsizes = [64]\n'
        '[[benchmark]]\ntool = "perftest"\ntest = "send_bw"\nsizes = [64]\n',
        "p.toml",
    )
    assert programs_of(plan.cells()) == ("ib_send_bw", "ib_write_lat")
