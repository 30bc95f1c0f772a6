# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI: plans, recipes, the daemon's command, and parsers on recorded output of the suites.

Most was printed by others, in public: osu-5.8 in converged-computing/metrics-operator's
documentation (the barrier in its notes on Usernetes), osu-6.1 in the "Raspberry Pi cluster" notes
of glennklockwood.com, osu-6.2 in notes on Open MPI's algorithms of reduce on 200 nodes,
osu-7.0-bcast and imb-2021.3-pingpong in the guide of utkarshayachit's Azure Batch demo,
osu-7.0-cuda in JSC's course on multi-GPU programming, osu-7.5-allreduce in Oracle's HPC tutorials
for OCI, osu-7.5-alltoall in CSCS's documentation, osu-7.5.2 in KISTI's user guide,
imb-2021.3-allreduce in a README of xFasterTransformer's tests; npb-2.3 and npb-3.2 on Open MPI's
users list (December and June 2007), npb-3.4.1 in a public log of a build by gfortran10 (September
2020); skampi-5.0 in a comment of the MPI Testing Tool, skampi-5.0.4 among recorded cluster runs of
2010. Recorded on this project's own machine: imb-2021.11 (of the package impi-rt, two ranks),
hpcc-1.5.0 (Debian 12, two ranks). Tables are cut to fewer sizes.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import CellError, StallError, UsageError
from rocelab.measure.mpi import launch, optional_suites
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.mpi import mpibench, recipe
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.benchmarks.mpi.suite import MpiJob, Sweep
from rocelab.plans.benchmarks.mpi.suites import SUITES
from rocelab.plans.catalog import TESTS, TRANSPORTS
from rocelab.plans.plan import MpiPlan
from rocelab.plans.steps import steps_of
from rocelab.testbed import gid
from rocelab.testbed.node import Completed

HERE = Path(__file__).parents[1] / "data"
PLAN = MpiPlan(2, 1, "osu", 64, True, True, ())
HEAD = '[plan]\nname = "p"\ntransports = ["tcp", "rxe-v2"]\n[[benchmark]]\ntool = "mpibench"\n'


def job(tool: str, test: str, *sizes: int, iterations: int = 20, ranks: int = 2) -> MpiJob:
    plan = MpiPlan(ranks, max(1, ranks // 2), "osu", 64, True, True, ())
    return MpiJob(TESTS[tool, test], sizes, iterations, plan)


def read(asked: MpiJob, name: str) -> Sweep:
    return SUITES[asked.test.tool].parse(asked, (HERE / name).read_text())


def figures(sweep: Sweep, size: int) -> dict[str, tuple[str, float, str]]:
    return {v.metric: (str(v.kind), v.value, v.unit) for v in sweep.values[size]}


def test_mpibench() -> None:
    text = (HERE / "mpibench-0.1.0-latency.json").read_text()
    row = json.loads(text)["results"][0]
    sweep = read(job("mpibench", "latency", 4, 1024), "mpibench-0.1.0-latency.json")
    assert figures(sweep, 4) == {
        "latency.mean": ("one_way_half_rtt", pytest.approx(row["latency_ns"]), "ns")
    }
    assert sweep.payload_bytes == 21 * 2 * (4 + 1024)
    assert sweep.messages == 21 * 2 * 2
    assert sweep.facts["nodes"] == [{"name": "n1", "ranks": 1}, {"name": "n2", "ranks": 1}]
    assert sweep.facts["cvars"]["pml"] == "ob1"
    assert mpibench.round_trips(text) == []
    streams = read(job("mpibench", "bw", 4, 1024), "mpibench-0.1.0-bw.json")
    assert set(figures(streams, 1024)) == {"bandwidth", "message_rate"}
    assert streams.payload_bytes == 21 * 64 * (4 + 1024)
    collective = read(job("mpibench", "allreduce", 4, 1024), "mpibench-0.1.0-allreduce.json")
    assert set(figures(collective, 4)) == {"latency.mean", "latency.rank_min", "latency.rank_max"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{"schema"', '{"shema"', "0 documents"),
        ("mpibench/1", "mpibench/2", "does not have the schema rocelab.mpibench/1"),
        ('"method":"osu"', '"method":"imb"', "another method or number of ranks"),
        ('"test":"latency","size":4,', '"test":"latency","size":8,', "results are for [8, 1024]"),
        ('"latency_ns":', '"latency_s":', "has no valid"),
        ('"latency_ns":', '"latency_ns":-', "is -"),
        ("]}", "", "incomplete"),
    ],
)
def test_mpibench_garbled(old: str, new: str, message: str) -> None:
    text = (HERE / "mpibench-0.1.0-latency.json").read_text()
    assert old in text
    with pytest.raises(CellError) as caught:
        SUITES["mpibench"].parse(job("mpibench", "latency", 4, 1024), text.replace(old, new))
    assert message in caught.value.what


def test_osu_of_several_versions() -> None:
    five = read(job("omb", "latency", 64, 1024), "osu-5.8-latency.txt")
    assert figures(five, 64) == {"latency.mean": ("one_way_half_rtt", 260, "ns")}
    assert five.facts == {"version": "5.8"}
    assert five.payload_bytes == 20 * (64 + 1024)
    # 20 timed ping-pongs and 2 before them
    assert five.sent == {64: 2 * 22, 1024: 2 * 22}
    bandwidth = read(job("omb", "bw", 64), "osu-5.8-bw.txt")
    assert bandwidth.sent == {64: 64 * 22}
    assert figures(bandwidth, 64)["bandwidth"] == ("one_way", 165.74e6, "bytes/s")
    assert figures(read(job("omb", "latency", 0), "osu-6.1-latency.txt"), 0) == {
        "latency.mean": ("one_way_half_rtt", 31280, "ns")
    }
    assert read(job("omb", "bcast", 1024), "osu-7.0-bcast.txt").sent == {}
    assert figures(read(job("omb", "bcast", 1024), "osu-7.0-bcast.txt"), 1024) == {
        "latency.mean": ("collective", 4430, "ns")
    }
    seven = read(job("omb", "allreduce", 4, ranks=144), "osu-7.5-allreduce.txt")
    assert figures(seven, 4)["latency.mean"] == ("collective", 11690, "ns")
    rate = read(job("omb", "mbw_mr", 1024, ranks=8), "osu-7.5.2-mbw_mr.txt")
    assert rate.sent == {1024: 4 * 64 * 22}
    assert figures(rate, 1024) == {
        "bandwidth": ("all_pairs", 9532.32e6, "bytes/s"),
        "message_rate": ("all_pairs", 9308903.88, "1/s"),
    }


@pytest.mark.parametrize("suffix", ["-x2", "+git.1a2b", "~rc1"])
@pytest.mark.parametrize(
    ("tool", "name", "version"),
    [
        ("omb", "osu-5.8-latency.txt", "5.8"),
        ("imb", "imb-2021.11-bcast.txt", "2021.11"),
        ("skampi", "skampi-5.0-bcast.txt", "5.0"),
        ("npb", "npb-2.3-mg.txt", "2.3"),
    ],
)
def test_versions_with_a_suffix(suffix: str, tool: str, name: str, version: str) -> None:
    """Builds of a site name themselves; their numbers are read as strictly as others."""
    asked = {
        "omb": job("omb", "latency", 64),
        "imb": job("imb", "bcast", 64, 1024),
        "skampi": job("skampi", "bcast", 1),
        "npb": application("npb", "mg", "B", 4),
    }[tool]
    text = (HERE / name).read_text().replace("MPI_Bcast-nodes-length", "bcast-1")
    plain = SUITES[tool].parse(asked, text)
    named = SUITES[tool].parse(asked, text.replace(version, version + suffix, 1))
    assert named.values == plain.values
    assert named.facts["version"].startswith(version + suffix)
    assert "note" not in {**named.facts, **plain.facts}
    later = SUITES[tool].parse(asked, text.replace(version, "9.9", 1))
    assert later.values == plain.values
    assert "not tested" in later.facts["note"]


def test_a_version_has_a_limit() -> None:
    text = (HERE / "osu-5.8-latency.txt").read_text()
    with pytest.raises(CellError, match="0 headings"):
        SUITES["omb"].parse(job("omb", "latency", 64), text.replace("v5.8", "v" + "7" * 99))


def test_osu_s_other_columns() -> None:
    """By their names: `-f`, `-c`, a barrier's, a build for GPUs."""
    full = read(job("omb", "reduce", 100000, ranks=200), "osu-6.2-reduce-full.txt")
    assert figures(full, 100000) == {
        "latency.mean": ("collective", 122610, "ns"),
        "latency.rank_min": ("collective", 39890, "ns"),
        "latency.rank_max": ("collective", 609980, "ns"),
    }
    assert "-f" in SUITES["omb"].argv(job("omb", "reduce", 4))
    assert "-f" not in SUITES["omb"].argv(job("omb", "latency", 4))
    assert figures(read(job("omb", "barrier", 0), "osu-5.8-barrier.txt"), 0) == {
        "latency.mean": ("collective", 8630, "ns")
    }
    gpu = read(job("omb", "allreduce", 1 << 24, ranks=4), "osu-7.0-cuda-allreduce.txt")
    assert figures(gpu, 1 << 24)["latency.mean"] == ("collective", 8630580, "ns")
    alltoall = job("omb", "alltoall", 4, ranks=8)
    name = "osu-7.5-alltoall-validation.txt"
    assert figures(read(alltoall, name), 4) == {"latency.mean": ("collective", 11990, "ns")}
    wrong = (HERE / name).read_text().replace("11.99              Pass", "11.99              Fail")
    with pytest.raises(CellError, match="the data of '4' bytes arrived corrupted"):
        SUITES["omb"].parse(alltoall, wrong)


def test_skampi() -> None:
    """Parse output recorded under the names that others gave their measurements."""

    def of(asked: MpiJob, name: str, theirs: str) -> Sweep:
        text = (HERE / name).read_text()
        ours = f"{asked.test.name}-{asked.sizes[0]}"
        assert f'begin measurement "{ours}"' in SUITES["skampi"].files(asked)["rocelab.ski"]
        return SUITES["skampi"].parse(asked, text.replace(theirs, ours))

    five = of(
        job("skampi", "allreduce", 35952), "skampi-5.0.4-allreduce.txt", "MPI_Allreduce-procs"
    )
    assert figures(five, 35952) == {
        "latency.mean": ("collective", 18900, "ns"),
        "latency.rank_min": ("collective", 18100, "ns"),
        "latency.rank_max": ("collective", 18900, "ns"),
    }
    assert (five.payload_bytes, five.messages) == (16 * 35952, 16)
    assert five.facts == {"version": "5.0.4 rev. 355"}
    first = of(job("skampi", "bcast", 1), "skampi-5.0-bcast.txt", "MPI_Bcast-nodes-length")
    assert figures(first, 1)["latency.rank_min"] == ("collective", 3100, "ns")
    six = SUITES["skampi"].parse(
        job("skampi", "latency", 4, 1024), (HERE / "skampi-6.0.0-latency.txt").read_text()
    )
    assert six.facts == {"version": "6.0.0 rev. 5fb775a0443f7721ebef4af50cb197d3c03b91cc"}
    four = job("skampi", "allreduce", 35952, ranks=4)
    with pytest.raises(CellError, match="5 numbers at 35952 bytes, of 4 ranks"):
        of(four, "skampi-5.0.4-allreduce.txt", "MPI_Allreduce-procs")


@pytest.mark.parametrize("row", ["count= 4 " + "1" * 5000 + "x", "count= 4 4 1.2.3 0.1 8 1.0 1.0"])
def test_skampi_s_hostile_lines(row: str) -> None:
    """Invalid numbers give a clear error quickly."""
    text = f'# SKaMPI Version 5.0\n# begin result "bcast-4"\n{row}\n'
    with pytest.raises(CellError, match="no line for 4 bytes"):
        SUITES["skampi"].parse(job("skampi", "bcast", 4), text)


def test_skampi_s_input() -> None:
    """Reductions use elements; a ping-pong has one rank of each half, and its result is halved."""
    suite = SUITES["skampi"]
    assert (
        "for count = 2 to 2 do\nmeasure comm(4) : Reduce(count, MPI_FLOAT, MPI_SUM, 0)\nod"
        in (suite.files(job("skampi", "reduce", 8, ranks=4))["rocelab.ski"])
    )
    pair = job("skampi", "latency", 64, ranks=4)
    assert (
        "measure comm2(0, 2) : Pingpong_Send_Recv(count, MPI_CHAR, 0, 10)"
        in (suite.files(pair)["rocelab.ski"])
    )
    said = '# SKaMPI Version 5.0.4 rev. 355\n# begin result "latency-64"\n'
    sweep = suite.parse(pair, f"{said}count= 64   64   40.0   0.5   8   40.0   39.0\n")
    assert figures(sweep, 64) == {"latency.mean": ("one_way_half_rtt", 20000, "ns")}
    assert sweep.messages == 80


def application(tool: str, test: str, problem: str, ranks: int) -> MpiJob:
    plan = MpiPlan(ranks, 1, "osu", 64, True, True, (), problem)
    return MpiJob(TESTS[tool, test], (0,), 1000, plan)


def test_npb() -> None:
    old = read(application("npb", "mg", "B", 4), "npb-2.3-mg.txt")
    assert figures(old, 0) == {
        "application.time": ("application", 47.19e9, "ns"),
        "application.rate": ("application", 412.43e6, "1/s"),
    }
    assert old.facts == {"version": "2.3"}
    assert read(application("npb", "cg", "A", 1), "npb-3.2-cg.txt").facts == {"version": "3.2"}
    with pytest.raises(CellError, match="total processes is None, not 6"):  # not built for MPI
        read(application("npb", "cg", "A", 6), "npb-3.4.1-cg-openmp.txt")
    two = application("npb", "cg", "S", 2)
    assert SUITES["npb"].programs(two) == ("cg.S.x", "cg.S.2")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SUCCESSFUL\n Version", "UNSUCCESSFUL\n Version", "verification is 'UNSUCCESSFUL'"),
        ("Class           =                        A", "Class = B", "class is 'B', not A"),
        ("Total processes =                        1", "Total processes = 2", "is '2', not 1"),
        ("CG Benchmark Completed", "MG Benchmark Completed", "instead of one of cg"),
        ("3.02", "0.00", "choose a larger class"),
        ("495.93\n Mop/s/process", "nan\n Mop/s/process", "mop/s total is 'nan'"),
    ],
)
def test_npb_garbled(old: str, new: str, message: str) -> None:
    text = (HERE / "npb-3.2-cg.txt").read_text()
    assert old in text
    text = text.replace(old, new)
    if new == "0.00":
        text = text.replace("=                   495.93", "=                     0.00")
    with pytest.raises(CellError) as caught:
        SUITES["npb"].parse(application("npb", "cg", "A", 1), text)
    assert message in caught.value.what


def test_hpcc() -> None:
    two = application("hpcc", "all", "200", 2)
    sweep = read(two, "hpcc-1.5.0.txt")
    assert figures(sweep, 0)["application.hpl.rate"] == ("application", 21775400, "1/s")
    assert figures(sweep, 8)["application.ping_pong.latency"] == ("application", 25857300, "ns")
    assert figures(sweep, 2_000_000)["application.random_ring.bandwidth"] == (
        *("application", 313704000, "bytes/s"),
    )
    assert sweep.facts == {"version": "1.5.0"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Success=1", "Success=0", "Success is '0', not 1"),
        ("CommWorldProcs=2", "CommWorldProcs=4", "CommWorldProcs is '4', not 2"),
        ("HPL_N=200", "HPL_N=1000", "HPL_N is '1000', not 200"),
        ("    0 tests completed and failed", "    1 tests completed and failed", "1 of its tests"),
        ("End of Summary", "End of", "no summary"),
    ],
)
def test_hpcc_garbled(old: str, new: str, message: str) -> None:
    text = (HERE / "hpcc-1.5.0.txt").read_text()
    assert old in text
    with pytest.raises(CellError) as caught:
        SUITES["hpcc"].parse(application("hpcc", "all", "200", 2), text.replace(old, new))
    assert message in caught.value.what


@pytest.mark.parametrize(("ranks", "grid"), [(2, (1, 2)), (4, (2, 2)), (6, (2, 3)), (7, (1, 7))])
def test_hpcc_s_input(ranks: int, grid: tuple[int, int]) -> None:
    """The settings that HPL reads from each line of HPL.dat (its TUNING)."""
    text = SUITES["hpcc"].files(application("hpcc", "all", "1000", ranks))["hpccinf.txt"]
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[4:8]] == ["1", "1000", "1", "80"]
    assert [int(line.split()[0]) for line in lines[10:12]] == list(grid)
    assert len(lines) == 31


def test_a_plan_s_problem() -> None:
    """Only applications have a problem size, by default a small one; they have no message sizes."""
    head = HEAD.replace("mpibench", "npb")
    plan = plan_file.from_toml(f'{head}test = "cg"\nmpi.problem = "A"\n', "p.toml")
    (cg,) = plan.benchmarks
    assert cg.sizes == (0,)
    assert cg.mpi is not None
    assert cg.mpi.problem == "A"
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    with pytest.raises(UsageError, match="'Z' is not a class of NPB"):
        plan_file.from_toml(f'{head}test = "cg"\nmpi.problem = "Z"\n', "p.toml")
    with pytest.raises(UsageError, match="not a setting of mpibench"):
        plan_file.from_toml(f'{HEAD}test = "bw"\nsizes = [4]\nmpi.problem = "A"\n', "p.toml")


class Bare:
    """Return a machine that has these programs."""

    def __init__(self, name: str, *programs: str) -> None:
        self.name, self.programs = name, programs

    def run(self, argv, **_: object) -> Completed:
        there = [name for name in argv[1:] if name in self.programs]
        return Completed(tuple(argv), 0 if there else 1, "".join(f"{n}\n" for n in there[:1]), "")


def test_a_missing_suite_is_an_error() -> None:
    """The error names the program, the nodes and how to get it."""
    cg, suite = application("npb", "cg", "S", 2), SUITES["npb"]
    both = [Bare("n1", "cg.S.2"), Bare("n2", "cg.S.2")]
    assert launch.find(suite, cg, both, "/f") == "cg.S.2"
    with pytest.raises(CellError, match=r"no cg\.S\.x or cg\.S\.2 on n1 and n2") as caught:
        launch.find(suite, cg, [Bare("n1"), Bare("n2")], "/f")
    assert "mpif90" in caught.value.action
    bcast, omb = job("omb", "bcast", 4), SUITES["omb"]
    with pytest.raises(CellError, match="OSU Micro-Benchmarks: no osu_bcast on n2"):
        launch.find(omb, bcast, [Bare("n1", "osu_bcast"), Bare("n2")], "/f")
    with pytest.raises(CellError, match="different programs"):
        launch.find(suite, cg, [Bare("n1", "cg.S.2"), Bare("n2", "cg.S.x")], "/f")


@dataclass
class Local:
    """Return a node whose commands run here, with temporary files in `folder`."""

    name: str
    folder: Path

    def run(self, argv, *, stdin=None, check=True, **_: object) -> Completed:
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        env = {"PATH": path, "TMPDIR": str(self.folder)}
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, env=env, check=check
        )
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


def test_a_plan_can_do_without_a_suite(tmp_path: Path) -> None:
    """An optional benchmark is left out where a node lacks it; the others never are."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "osu_bw").write_text("")
    (tmp_path / "bin" / "osu_bw").chmod(0o755)
    nodes = [Local("n1", tmp_path), Local("n2", tmp_path)]

    def suite(tool: str, test: str, optional: str) -> str:
        return f'[[benchmark]]\ntool = "{tool}"\ntest = "{test}"\nsizes = [4]\n{optional}\n'

    start = HEAD[: HEAD.index("[[benchmark]]")]
    omb = suite("omb", "bw", "optional = true") + suite("omb", "latency", "optional = true")
    plan = plan_file.from_toml(start + omb + suite("imb", "latency", ""), "p.toml")
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    left, why = optional_suites.leave_out_missing(plan, nodes)
    assert [f"{b.tool} {b.test}" for b in left.benchmarks] == ["omb bw", "imb latency"]
    [said] = why
    assert said == "omb latency: OSU Micro-Benchmarks: no osu_latency on n1 and n2"
    assert list(tmp_path.iterdir()) == [tmp_path / "bin"]
    plan = plan_file.from_toml(start + suite("omb", "latency", "optional = true"), "p.toml")
    with pytest.raises(UsageError, match="none of the plan's benchmarks"):
        optional_suites.leave_out_missing(plan, nodes)
    with pytest.raises(UsageError, match="mpibench is on every node"):
        plan_file.from_toml(start + suite("mpibench", "bw", "optional = true"), "p.toml")


def test_ranks_find_their_program_and_files(tmp_path: Path) -> None:
    """The scripts run each rank in the folder of the suite's files, with its node's settings."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "cg.S.2"
    program.write_text('#!/bin/sh\necho "$UCX_TLS $1 $(cat input)" | tee report\n')
    program.chmod(0o755)
    node, cg = Local("n1", tmp_path), application("npb", "cg", "S", 2)
    settings = [{"UCX_TLS": "first"}, {"UCX_TLS": "second"}]
    with launch.prepare([node], settings, {"input": "problem"}) as there:
        assert launch.find(SUITES["npb"], cg, [node], there) == "cg.S.2"
        with pytest.raises(CellError, match=r"no cg\.A\.x or cg\.A\.2 on n1"):
            launch.find(SUITES["npb"], application("npb", "cg", "A", 2), [node], there)
        for rank, which in ((0, "first"), (1, "second")):
            words = ("env", f"OMPI_COMM_WORLD_RANK={rank}", f"{there}/rank", "1", there)
            said = node.run((*words, "cg.S.2", "-x"))
            assert said.stdout == f"{which} -x problem\n"
            assert Path(there, "report").read_text() == said.stdout
        assert node.run((f"{there}/rank", "1", there, "nowhere"), check=False).returncode == 127
        memory = Path("/dev/shm", Path(there).name)
        assert stat.S_IMODE(memory.stat().st_mode) == stat.S_IMODE(Path(there).stat().st_mode)
    assert not Path(there).exists()
    assert not memory.exists()


def test_no_rank_outlives_a_job_that_failed(tmp_path: Path) -> None:
    """It would send into the next cell."""
    # without the mark of a run, whose lease would end it, too
    environment = {"TMPDIR": "", "PATH": os.environ["PATH"]}
    with suppress(StallError), launch.prepare([Local("n1", tmp_path)], [{}]) as there:
        environment["TMPDIR"] = there
        rank = subprocess.Popen(("sleep", "1000"), env=environment, start_new_session=True)
        raise StallError("mpirun did not end")
    assert rank.wait() == -signal.SIGKILL


@pytest.mark.parametrize("there", ["link", "other owner"])
def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    """Ranks run scripts in it, perhaps as root."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    if there == "link":
        (tmp_path / "link").symlink_to(theirs)
    elif os.getuid():
        pytest.skip("only root gives folders away")
    else:
        os.chown(theirs, 65534, 65534)
    chosen = tmp_path / "link" if there == "link" else theirs
    monkeypatch.setattr(launch, "memory", lambda _: str(chosen))
    with (
        pytest.raises(subprocess.CalledProcessError) as caught,
        launch.prepare([Local("n1", tmp_path)], [{}]),
    ):
        pass
    assert "somebody else's" in str(caught.value.stderr)
    assert not list(tmp_path.glob("theirs/*"))


def test_imb() -> None:
    pair = read(job("imb", "latency", 64), "imb-2021.3-pingpong.txt")
    assert figures(pair, 64) == {"latency.mean": ("one_way_half_rtt", 2180, "ns")}
    assert (pair.payload_bytes, pair.messages) == (64000, 1000)
    assert pair.facts == {"version": "2021.3"}
    alone = read(job("imb", "allreduce", 65536, ranks=1), "imb-2021.3-allreduce.txt")
    assert figures(alone, 65536) == {
        "latency.mean": ("collective", 1490, "ns"),
        "latency.rank_min": ("collective", 1490, "ns"),
        "latency.rank_max": ("collective", 1490, "ns"),
    }
    assert alone.messages == 640
    # the heading of 2018 contains a space
    text = (HERE / "imb-2021.3-pingpong.txt").read_text()
    older = text.replace("Intel(R) MPI Benchmarks 2021.3", "Intel (R) MPI Benchmarks 2018")
    assert SUITES["imb"].parse(job("imb", "latency", 64), older).facts == {"version": "2018"}
    newer = read(job("imb", "bcast", 64, 1024), "imb-2021.11-bcast.txt")
    assert figures(newer, 1024) == {
        "latency.mean": ("collective", pytest.approx(612490), "ns"),
        "latency.rank_min": ("collective", pytest.approx(14280), "ns"),
        "latency.rank_max": ("collective", pytest.approx(1210710), "ns"),
    }
    barrier = read(job("imb", "barrier", 0), "imb-2021.11-barrier.txt")
    assert figures(barrier, 0)["latency.mean"] == ("collective", 370, "ns")
    both_ways = read(job("imb", "bibw", 1024), "imb-2021.11-biband.txt")
    assert figures(both_ways, 1024) == {
        "bandwidth": ("both_ways", pytest.approx(52.68e6), "bytes/s"),
        "message_rate": ("both_ways", 51441, "1/s"),
    }


@pytest.mark.parametrize(
    ("tool", "test", "name", "message"),
    [
        ("omb", "bcast", "osu-5.8-latency.txt", "its heading says 'Latency'"),
        ("omb", "latency", "imb-2021.3-pingpong.txt", "0 headings"),
        ("omb", "latency", "osu-6.1-latency.txt", "no line for 64 bytes"),
        ("imb", "latency", "osu-5.8-latency.txt", "no heading of the Intel"),
        ("imb", "bcast", "imb-2021.3-pingpong.txt", "no results of Bcast with 2"),
        ("imb", "allreduce", "imb-2021.3-allreduce.txt", "no results of Allreduce with 2"),
    ],
)
def test_other_output_is_refused(tool: str, test: str, name: str, message: str) -> None:
    with pytest.raises(CellError) as caught:
        read(job(tool, test, 64), name)
    assert message in caught.value.what


@given(st.text(max_size=300))
@pytest.mark.parametrize("tool", SUITES)
def test_no_text_breaks_a_parser(tool: str, text: str) -> None:
    test = next(name for of_tool, name in TESTS if of_tool == tool)
    with pytest.raises(CellError):
        SUITES[tool].parse(job(tool, test, 64), text)


def test_a_plan_s_mpi() -> None:
    text = HEAD + (
        'test = "allreduce"\nsizes = [4, 1024]\n[benchmark.mpi]\nranks = 5\nmethod = "imb"\n'
        'yield_when_idle = false\nmca = ["coll_tuned_allreduce_algorithm=3"]\n'
    )
    plan = plan_file.from_toml(text, "p.toml")
    mpi = plan.benchmarks[0].mpi
    assert mpi == MpiPlan(5, 3, "imb", 64, False, True, ("coll_tuned_allreduce_algorithm=3",))
    assert steps_of(plan.benchmarks[0]) == ((4, 1024),)
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    apart = plan_file.from_toml(text.replace('method = "imb"', "sweep = false"), "p.toml")
    assert steps_of(apart.benchmarks[0]) == ((4,), (1024,))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('test = "allreduce"\nsizes = [6]', "6 bytes is not a multiple of 4 bytes"),
        ('test = "barrier"\nsizes = [4]', "4 is out of range"),
        ('test = "bw"\nsizes = [4]\nmpi.ranks = 1', "mpi.ranks: 1 is out of range"),
        ('test = "bw"\nsizes = [4]\nmpi.ranks = 4\nmpi.ranks_per_node = 1', "Allowed: 2 to 3"),
        ('test = "bw"\nsizes = [4]\nmpi.mca = ["x=$(reboot)"]', "is not an Open MPI parameter"),
        ('test = "bw"\nsizes = [4]\nmpi.mca = ["pml=ob1"]', "is not an Open MPI parameter"),
        ('test = "bw"\nsizes = [4]\nmpi.mca = [4]', "4 is not a string"),
        ('test = "bw"\nsizes = [4]\nmpi.rank = 4', "mpi.rank: unknown key"),
    ],
)
def test_bad_plans_are_refused(lines: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_file.from_toml(f"{HEAD}{lines}\n", "p.toml")
    assert message in f"{caught.value.what} {caught.value.action}"


def test_labels_tell_algorithms_apart() -> None:
    one = 'test = "allreduce"\nsizes = [4]\n'
    ring = 'label = "ring"\nmpi.mca = ["coll_tuned_allreduce_algorithm=4"]\n'
    again = '[[benchmark]]\ntool = "mpibench"\n'
    plan = plan_file.from_toml(f"{HEAD}{one}{again}{one}{ring}", "p.toml")
    names = {cell.name for cell in plan.cells() if cell.repetition == 1}
    assert "mpibench-allreduce.tcp.r01" in names
    assert "mpibench-allreduce-ring.tcp.r01" in names
    with pytest.raises(UsageError, match="mpibench allreduce-ring appears twice"):
        plan_file.from_toml(f"{HEAD}{one}{ring}{again}{one}{ring}", "p.toml")
    with pytest.raises(UsageError, match="cannot be a label"):
        plan_file.from_toml(f"{HEAD}{one}{ring.replace('ring', '../x')}", "p.toml")


def test_algorithms_are_swept() -> None:
    """One benchmark for each algorithm, which Open MPI gets as a setting; run.json round-trips."""
    text = HEAD + 'test = "bcast"\nsizes = [4]\nlabel = "few"\nalgorithms = [0, 6]\n'
    plan = plan_file.from_toml(text, "p.toml")
    assert {b.title: b.mpi and b.mpi.mca for b in plan.benchmarks} == {
        "bcast-fewalg0": ("coll_tuned_use_dynamic_rules=1", "coll_tuned_bcast_algorithm=0"),
        "bcast-fewalg6": ("coll_tuned_use_dynamic_rules=1", "coll_tuned_bcast_algorithm=6"),
    }
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    with pytest.raises(UsageError, match="algorithms"):
        plan_file.from_toml(text.replace("bcast", "latency"), "p.toml")
    with pytest.raises(UsageError, match="33 is out of range"):
        plan_file.from_toml(text.replace("[0, 6]", "[33]"), "p.toml")


def test_only_mpi_has_ranks() -> None:
    text = HEAD.replace("mpibench", "perftest") + 'test = "write_lat"\nsizes = [4]\nmpi.ranks = 2\n'
    with pytest.raises(UsageError, match="mpi: unknown key"):
        plan_file.from_toml(text, "p.toml")


def test_recipes() -> None:
    """The settings are those that work (docs/howto/mpi.md)."""
    place = Place("n1", "data0", "rxe0", 1, 2)
    verbs = recipe.for_node(TRANSPORTS["rxe-v2"], place, one_machine=False)
    assert verbs == {
        "ROCELAB_NODE": "n1",
        "OMPI_MCA_pml": "ucx",
        "UCX_NET_DEVICES": "rxe0:1",
        "UCX_TLS": "rc_verbs,ud_verbs,self,sm",
        "UCX_UD_ETH_DGID_CHECK": "n",
        "UCX_UD_TIMEOUT": "300s",
        "UCX_IB_GID_INDEX": "2",
    }
    alone = recipe.for_node(TRANSPORTS["rxe-v2"], place, one_machine=True)
    assert alone["UCX_TLS"] == "rc_verbs,ud_verbs,self", "shared memory would keep it off the wire"
    asked = {"one_machine": False, "traffic_class": 106, "service_level": 0}
    classed = recipe.for_node(TRANSPORTS["rxe-v2"], place, **asked)
    assert classed == {**verbs, "UCX_IB_TRAFFIC_CLASS": "106", "UCX_IB_SL": "0"}
    assert "UCX_IB_SL" not in recipe.for_node(TRANSPORTS["tcp"], place, **asked)
    tcp = recipe.for_node(TRANSPORTS["tcp"], Place("n1", "data0"), one_machine=False)
    assert tcp["OMPI_MCA_pml"] == "ob1"
    assert tcp["OMPI_MCA_btl_tcp_if_include"] == "data0"
    job_settings = recipe.for_job(PLAN, "/run/agent", control="peer0")
    assert job_settings["PRTE_MCA_prte_if_include"] == "peer0"
    assert job_settings["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert not any("include" in name for name in recipe.for_job(PLAN, "", control=None))
    assert not any("ipv6" in name for name in job_settings)
    ipv6 = recipe.for_job(PLAN, "/run/agent", control="peer0", ipv6=True)
    assert ipv6["PRTE_MCA_prte_disable_ipv6_family"] == "0"


def test_mpirun_finds_itself_under_any_node_name() -> None:
    """A node may have the host name of another node's machine."""
    hosts = "localhost:1,rocelab-beta:1"
    assert recipe.mpirun(PLAN, ("alpha", "beta"))[:3] == ("mpirun", "--host", hosts)


def test_a_strange_interface_name_is_refused() -> None:
    with pytest.raises(CellError):
        recipe.for_node(TRANSPORTS["tcp"], Place("n1", "data0; reboot"), one_machine=False)


def test_the_gid_of_the_address_and_of_the_right_type() -> None:
    base = "/sys/class/infiniband/rxe0/ports/1"
    listing = "\n".join(
        f"{base}/gids/{index}:{address}\n{base}/gid_attrs/types/{index}:{kind}"
        for index, (address, kind) in enumerate(
            [
                ("fe80:0000:0000:0000:5054:00ff:fe44:0001", "IB/RoCE v1"),
                ("0000:0000:0000:0000:0000:ffff:0a2c:0001", "IB/RoCE v1"),
                ("0000:0000:0000:0000:0000:ffff:0a2c:0001", "RoCE v2"),
            ]
        )
    )
    gids = gid.parse(listing)
    assert gid.choose(gids, "RoCE v2", "10.44.0.1") == gids[2]
    assert gid.choose(gids, "IB/RoCE v1", "10.44.0.1") == gids[1]
    assert gid.choose(gids[:2], "RoCE v2", "10.44.0.1") is None


# recorded: Open MPI 5 of Debian 13, shortened
ASKED = (
    "rocelab-agent: rocelab-n2 PRTE_PREFIX=/usr;export PRTE_PREFIX;LD_LIBRARY_PATH=/usr/lib:"
    "$LD_LIBRARY_PATH;export LD_LIBRARY_PATH;/usr/bin/prted --leave-session-attached "
    '--allow-run-as-root --prtemca ess "env" --prtemca prte_hnp_uri '
    '"prterun-n1-233@0.0;tcp://172.31.0.1:43329:24" '
    '--prtemca prte_if_include "eno1" --tree-spawn'
)


def test_the_daemons_command_is_parsed() -> None:
    words = launch.daemon(ASKED, "peer0")
    assert words[0] == "prted"
    assert "prterun-n1-233@0.0;tcp://172.31.0.1:43329:24" in words
    assert words[-3:] == ("prte_if_include", "peer0", "--tree-spawn"), "the daemon's own interface"


@pytest.mark.parametrize(
    ("uri", "port"),
    [
        ("prterun-n1-233@0.0;tcp://172.31.0.1:43329:24", 43329),
        ("prterun-n1-403@0.0;tcp6://[fd00:1::1]:48115:64", 48115),
        ("1811546112.0;tcp://192.0.2.1,198.51.100.1:46255", 46255),
    ],
)
def test_the_port_of_mpirun_is_known(uri: str, port: int) -> None:
    """Open MPI 5 over IPv4 and IPv6, and Open MPI 4 with two addresses."""
    line = f'rocelab-agent: rocelab-n2 /usr/bin/prted --prtemca prte_hnp_uri "{uri}" --tree-spawn'
    assert launch.control_ports(Completed((), 0, "", f"noise\n{line}\n")) == {port}


@pytest.mark.parametrize(
    "line",
    [
        "rocelab-agent: n2",
        "rocelab-agent: n2 rm -rf /",
        "rocelab-agent: n2 /usr/bin/prted; reboot",
        'rocelab-agent: n2 /usr/bin/prted "',
    ],
)
def test_other_commands_are_refused(line: str) -> None:
    with pytest.raises(CellError):
        launch.daemon(line, "peer0")


@given(st.text(max_size=100))
def test_any_line_is_a_daemon_or_an_error(text: str) -> None:
    try:
        words = launch.daemon(f"rocelab-agent: {text}", "peer0")
    except CellError:
        return
    assert shlex.join(words).split("/")[-1]
