# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI: plans, recipes, the daemon's command, and parsers on what the suites really printed.

OSU's and Intel's output was printed by others, in public: osu-5.8 in
converged-computing/metrics-operator's documentation, osu-6.1 in the "Raspberry Pi cluster" notes of
glennklockwood.com, osu-7.0 and imb-2021.3-pingpong in the guide of utkarshayachit's Azure Batch
demo, osu-7.5 in Oracle's HPC tutorials for OCI, osu-7.5.2 in KISTI's user guide,
imb-2021.3-allreduce in a README of xFasterTransformer's tests. Tables are cut to fewer sizes.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.bench import gid, plan_file
from rocelab.bench.catalog import TESTS, TRANSPORTS
from rocelab.bench.mpi import recipe
from rocelab.bench.mpi.recipe import Place
from rocelab.bench.mpi.suite import MpiJob, Sweep
from rocelab.bench.mpi.suites import SUITES
from rocelab.bench.plan import MpiPlan
from rocelab.errors import CellError, UsageError
from rocelab.run.mpi import launch

HERE = Path(__file__).parent / "data"
PLAN = MpiPlan(2, 1, "osu", 64, True, True, ())
HEAD = '[plan]\nname = "p"\ntransports = ["tcp", "rxe-v2"]\n[[benchmark]]\ntool = "mpibench"\n'


def job(tool: str, test: str, *sizes: int, iterations: int = 20, ranks: int = 2) -> MpiJob:
    plan = MpiPlan(ranks, max(1, ranks // 2), "osu", 64, True, True, ())
    return MpiJob(TESTS[tool, test], sizes, iterations, plan)


def read(found: MpiJob, name: str) -> Sweep:
    return SUITES[found.test.tool].parse(found, (HERE / name).read_text())


def figures(sweep: Sweep, size: int) -> dict[str, tuple[str, float, str]]:
    return {v.metric: (str(v.kind), v.value, v.unit) for v in sweep.values[size]}


def test_mpibench() -> None:
    text = (HERE / "mpibench-0.1.0-latency.json").read_text()
    row = json.loads(text)["results"][0]
    found = read(job("mpibench", "latency", 4, 1024), "mpibench-0.1.0-latency.json")
    assert figures(found, 4) == {
        "latency.mean": ("one_way_half_rtt", pytest.approx(row["latency_ns"]), "ns")
    }
    assert found.payload_bytes == 21 * 2 * (4 + 1024)
    assert found.messages == 21 * 2 * 2
    assert found.facts["nodes"] == [{"name": "n1", "ranks": 1}, {"name": "n2", "ranks": 1}]
    assert found.facts["cvars"]["pml"] == "ob1"
    streams = read(job("mpibench", "bw", 4, 1024), "mpibench-0.1.0-bw.json")
    assert set(figures(streams, 1024)) == {"bandwidth", "message_rate"}
    assert streams.payload_bytes == 21 * 64 * (4 + 1024)
    collective = read(job("mpibench", "allreduce", 4, 1024), "mpibench-0.1.0-allreduce.json")
    assert set(figures(collective, 4)) == {"latency.mean", "latency.rank_min", "latency.rank_max"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{"schema"', '{"shema"', "0 documents"),
        ("mpibench/1", "mpibench/2", "does not say rocelab.mpibench/1"),
        ('"method":"osu"', '"method":"imb"', "not those that were asked for"),
        ('"test":"latency","size":4,', '"test":"latency","size":8,', "results are for [8, 1024]"),
        ('"latency_ns":', '"latency_s":', "lacks or garbles"),
        ('"latency_ns":', '"latency_ns":-', "is -"),
        ("]}", "", "not complete"),
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
    bandwidth = read(job("omb", "bw", 64), "osu-5.8-bw.txt")
    assert figures(bandwidth, 64)["bandwidth"] == ("one_way", 165.74e6, "bytes/s")
    assert figures(read(job("omb", "latency", 0), "osu-6.1-latency.txt"), 0) == {
        "latency.mean": ("one_way_half_rtt", 31280, "ns")
    }
    assert figures(read(job("omb", "bcast", 1024), "osu-7.0-bcast.txt"), 1024) == {
        "latency.mean": ("collective", 4430, "ns")
    }
    seven = read(job("omb", "allreduce", 4, ranks=144), "osu-7.5-allreduce.txt")
    assert figures(seven, 4)["latency.mean"] == ("collective", 11690, "ns")
    rate = read(job("omb", "mbw_mr", 1024, ranks=8), "osu-7.5.2-mbw_mr.txt")
    assert figures(rate, 1024) == {
        "bandwidth": ("all_pairs", 9532.32e6, "bytes/s"),
        "message_rate": ("all_pairs", 9308903.88, "1/s"),
    }


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
    with pytest.raises(CellError):
        SUITES[tool].parse(job(tool, "latency", 64), text)


def test_a_plan_s_mpi() -> None:
    text = HEAD + (
        'test = "allreduce"\nsizes = [4, 1024]\n[benchmark.mpi]\nranks = 5\nmethod = "imb"\n'
        'yield_when_idle = false\nmca = ["coll_tuned_allreduce_algorithm=3"]\n'
    )
    plan = plan_file.from_toml(text, "p.toml")
    mpi = plan.benchmarks[0].mpi
    assert mpi == MpiPlan(5, 3, "imb", 64, False, True, ("coll_tuned_allreduce_algorithm=3",))
    assert plan.benchmarks[0].steps() == ((4, 1024),)
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    apart = plan_file.from_toml(text.replace('method = "imb"', "sweep = false"), "p.toml")
    assert apart.benchmarks[0].steps() == ((4,), (1024,))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('test = "allreduce"\nsizes = [6]', "6 bytes do not divide into elements of 4 bytes"),
        ('test = "barrier"\nsizes = [4]', "4 is out of range"),
        ('test = "bw"\nsizes = [4]\nmpi.ranks = 1', "mpi.ranks: 1 is out of range"),
        ('test = "bw"\nsizes = [4]\nmpi.ranks = 4\nmpi.ranks_per_node = 1', "Allowed: 2 to 3"),
        ('test = "bw"\nsizes = [4]\nmpi.mca = ["x=$(reboot)"]', "is not a parameter of Open MPI"),
        ('test = "bw"\nsizes = [4]\nmpi.mca = ["pml=ob1"]', "is not a parameter of Open MPI"),
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
    with pytest.raises(UsageError, match="mpibench allreduce-ring is there twice"):
        plan_file.from_toml(f"{HEAD}{one}{ring}{again}{one}{ring}", "p.toml")
    with pytest.raises(UsageError, match="is no label"):
        plan_file.from_toml(f"{HEAD}{one}{ring.replace('ring', '../x')}", "p.toml")


def test_algorithms_are_swept() -> None:
    """One benchmark for each, and Open MPI is told which; run.json reads back the same."""
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
    """The settings that are known to work (docs/howto/mpi.md)."""
    place = Place("n1", "data0", "rxe0", 1, 2)
    verbs = recipe.for_node(TRANSPORTS["rxe-v2"], place, one_machine=False)
    assert verbs == {
        "ROCELAB_NODE": "n1",
        "OMPI_MCA_pml": "ucx",
        "UCX_NET_DEVICES": "rxe0:1",
        "UCX_TLS": "rc_verbs,ud_verbs,self,sm",
        "UCX_UD_TIMEOUT": "300s",
        "UCX_IB_GID_INDEX": "2",
    }
    alone = recipe.for_node(TRANSPORTS["rxe-v2"], place, one_machine=True)
    assert alone["UCX_TLS"] == "rc_verbs,ud_verbs,self", "shared memory would keep it off the wire"
    tcp = recipe.for_node(TRANSPORTS["tcp"], Place("n1", "data0"), one_machine=False)
    assert tcp["OMPI_MCA_pml"] == "ob1"
    assert tcp["OMPI_MCA_btl_tcp_if_include"] == "data0"
    job_settings = recipe.for_job(PLAN, "172.31.0.0/24", "/run/agent")
    assert job_settings["PRTE_MCA_prte_if_include"] == "172.31.0.0/24"
    assert job_settings["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert not any("include" in name for name in recipe.for_job(PLAN, None, ""))
    assert recipe.mpirun(PLAN, ("n1", "n2"))[:3] == ("mpirun", "--host", "n1:1,n2:1")


def test_what_a_node_says_is_no_setting() -> None:
    with pytest.raises(CellError):
        recipe.for_node(TRANSPORTS["tcp"], Place("n1", "data0; reboot"), one_machine=False)


def test_the_link_local_gid_of_the_right_type() -> None:
    base = "/sys/class/infiniband/rxe0/ports/1"
    listing = "\n".join(
        f"{base}/gids/{index}:{address}\n{base}/gid_attrs/types/{index}:{kind}"
        for index, (address, kind) in enumerate(
            [
                ("fe80:0000:0000:0000:5054:00ff:fe44:0001", "IB/RoCE v1"),
                ("0000:0000:0000:0000:0000:ffff:0a2c:0001", "RoCE v2"),
                ("fe80:0000:0000:0000:5054:00ff:fe44:0001", "RoCE v2"),
            ]
        )
    )
    found = gid.parse(listing)
    assert gid.choose_link_local(found, "RoCE v2", node="n1").index == 2
    assert gid.choose_link_local(found, "IB/RoCE v1", node="n1").index == 0
    with pytest.raises(CellError, match="n1 has no RoCE v2 GID for a link-local address"):
        gid.choose_link_local(found[:2], "RoCE v2", node="n1")


# recorded: Open MPI 5 of Debian 13, shortened
ASKED = (
    "rocelab-agent: n2 PRTE_PREFIX=/usr;export PRTE_PREFIX;LD_LIBRARY_PATH=/usr/lib:"
    "$LD_LIBRARY_PATH;export LD_LIBRARY_PATH;/usr/bin/prted --leave-session-attached "
    '--allow-run-as-root --prtemca ess "env" --prtemca prte_hnp_uri '
    '"prterun-n1-233@0.0;tcp://172.31.0.1:43329:24" --tree-spawn'
)


def test_only_the_daemon_is_started() -> None:
    words = launch.daemon(ASKED)
    assert words[0] == "/usr/bin/prted"
    assert "prterun-n1-233@0.0;tcp://172.31.0.1:43329:24" in words
    assert words[-1] == "--tree-spawn"


@pytest.mark.parametrize(
    "line",
    [
        "rocelab-agent: n2",
        "rocelab-agent: n2 rm -rf /",
        "rocelab-agent: n2 /usr/bin/prted; reboot",
        'rocelab-agent: n2 /usr/bin/prted "',
    ],
)
def test_nothing_else_is(line: str) -> None:
    with pytest.raises(CellError):
        launch.daemon(line)


@given(st.text(max_size=100))
def test_any_line_is_a_daemon_or_an_error(text: str) -> None:
    try:
        words = launch.daemon(f"rocelab-agent: {text}")
    except CellError:
        return
    assert shlex.join(words).split("/")[-1]
