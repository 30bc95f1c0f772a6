# SPDX-License-Identifier: GPL-2.0-or-later
"""mpibench with local ranks: every test, method and rank count; corrupted data never pass."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from requirements import need_program
from rocelab.plans.benchmarks.mpi import mpibench

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "tools/mpibench"
PAIRS = ("latency", "multi_lat", "bw", "bibw", "mbw_mr")
COLLECTIVES = (
    *("bcast", "scatter", "gather", "reduce", "allreduce", "allgather", "barrier"),
    *("alltoall", "reduce_scatter"),
)
# CI may run as root; ranks share its processors, and none may spin while others work
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_plm": "isolated",
}


@cache
def built(folder: Path) -> Path:
    """Build the program."""
    for name in ("mpicc", "mpirun", "make"):
        need_program(name)
    subprocess.run(["make", "-s", "-C", SOURCES, f"O={folder}"], check=True)
    return folder / "mpibench"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("mpibench"))


def run(
    program: Path, ranks: int, *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["mpirun", "--bind-to", "none", "-n", str(ranks), str(program), *words],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def document(program: Path, ranks: int, *words: str) -> dict[str, Any]:
    done = run(program, ranks, "--json", *words)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


WAYS = {"latency": 2, "bw": 1}
METHODS, RANKS = ("osu", "imb", "skampi"), (2, 3, 4)
EVERY_TEST = [
    # each method and each number once; every pair of them in `make test`
    pytest.param(method, ranks, marks=() if at == number else pytest.mark.slow)
    for at, method in enumerate(METHODS)
    for number, ranks in enumerate(RANKS)
]


@pytest.mark.parametrize(("method", "ranks"), EVERY_TEST)
def test_every_test_at_every_rank_count(program: Path, method: str, ranks: int) -> None:
    """All tests run in one mpirun; mpibench itself checks the data for each root."""
    results = document(
        program, ranks, "-m", method, "-i", "9", "-s", "4,1000,20000", *PAIRS, *COLLECTIVES
    )
    assert results["schema"] == "rocelab.mpibench/1"
    assert (results["method"], results["ranks"]) == (method, ranks)
    rows = [(row["test"], row["size"]) for row in results["results"]]
    sized = [t for t in (*PAIRS, *COLLECTIVES) if t != "barrier"]
    assert sorted(rows) == sorted(
        [("barrier", 0), *((t, s) for t in sized for s in (4, 1000, 20000))]
    )
    for row in results["results"]:
        value = row.get("latency_ns", row.get("bandwidth"))
        assert value > 0
        assert row["across"] == {"bytes": 0, "messages": 0}, "all ranks are on one node"
        if row["test"] in COLLECTIVES and method != "skampi":
            spread = row["ranks_ns"]
            assert spread["min"] <= spread["mean"] <= spread["max"]
            assert row["latency_ns"] == pytest.approx(spread["mean"])


def test_sizes_that_divide_among_no_ranks(program: Path) -> None:
    """A vector with fewer elements than ranks, and empty messages."""
    document(program, 3, "-i", "2", "-s", "4,8", "reduce_scatter")
    document(program, 2, "-i", "2", "-s", "0", "latency", "bw", "bcast", "alltoall", "allgather")


@pytest.mark.parametrize("method", METHODS)
def test_the_time_of_each_operation(program: Path, method: str) -> None:
    """Of the first trial, without warm-up, at rank 0; collectives have none."""
    words = ("-m", method, "-i", "9", "-t", "2", "-s", "4,64", "-e", "latency", "bw", "bcast")
    text = run(program, 2, "--json", *words).stdout
    rows = json.loads(text)["results"]
    assert [len(row.get("each_ns", ())) for row in rows][4:] == [0, 0]
    for row in rows[:4]:
        if method != "skampi":  # the second trial may have had fewer
            assert len(row["each_ns"]) == row["iterations"] - 1
            # all but the last operation are between the begins
            assert sum(row["each_ns"]) <= row["trials_ns"][0] * WAYS[row["test"]] * 9 * 1.01
        assert min(row["each_ns"]) > 0
    assert mpibench.round_trips(text) == [row["each_ns"] for row in rows[:2]]


def across(program: Path, test: str, size: int, iterations: int = 10) -> tuple[int, int]:
    """Return what must cross the link with ranks 0 and 1 on node a, 2 and 3 on b."""
    script = 'export ROCELAB_NODE=$((OMPI_COMM_WORLD_RANK / 2)); exec "$@"'
    done = subprocess.run(
        [
            *("mpirun", "--bind-to", "none", "-n", "4", "sh", "-c", script, "sh", str(program)),
            *("--json", "-w", "0", "-i", str(iterations), "-s", str(size), "-W", "8", test),
        ],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    results = json.loads(done.stdout)
    assert [node["ranks"] for node in results["nodes"]] == [2, 2]
    row = results["results"][0]["across"]
    return row["bytes"], row["messages"]


@pytest.mark.slow
def test_what_must_cross_the_link(program: Path) -> None:
    """Computed by hand for two nodes of two ranks: ten iterations and the check."""
    assert across(program, "latency", 100) == (11 * 2 * 100, 11 * 2)
    assert across(program, "mbw_mr", 100) == (11 * 2 * 8 * 100, 11 * 2 * 8)
    assert across(program, "bcast", 100) == (11 * 100, 11)
    assert across(program, "gather", 100) == (11 * 2 * 100, 11)
    assert across(program, "allreduce", 100) == (11 * 2 * 100, 11 * 2)
    assert across(program, "alltoall", 100) == (11 * 8 * 100, 11 * 2)
    assert across(program, "allgather", 100) == (11 * 4 * 100, 11 * 2)


MEDDLER = """
#include <mpi.h>
int MPI_{name}({parameters})
{{
	int status = PMPI_{name}({arguments}), rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == {rank})
		((unsigned char *){buffer})[5] ^= 1;
	return status;
}}
"""
MEDDLED = {
    "Bcast": ("bcast", "b", "void *b, int n, MPI_Datatype t, int r, MPI_Comm c", "b, n, t, r, c"),
    "Allreduce": (
        "allreduce",
        "r",
        "const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c",
        "s, r, n, t, o, c",
    ),
    "Alltoall": (
        "alltoall",
        "r",
        "const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c",
        "s, n, t, r, m, u, c",
    ),
    "Recv": (
        "latency",
        "b",
        "void *b, int n, MPI_Datatype t, int f, int g, MPI_Comm c, MPI_Status *s",
        "b, n, t, f, g, c, s",
    ),
}


# mpirun takes two seconds to end after an error
@pytest.mark.parametrize(
    "name",
    [
        name if index == 0 else pytest.param(name, marks=pytest.mark.slow)
        for index, name in enumerate(MEDDLED)
    ],
)
def test_one_wrong_bit_is_found(program: Path, tmp_path: Path, name: str) -> None:
    """Corruption is found: a library between mpibench and MPI flips a bit at the last rank."""
    test, buffer, parameters, arguments = MEDDLED[name]
    source, library = tmp_path / "meddler.c", tmp_path / "meddler.so"
    source.write_text(
        MEDDLER.format(name=name, parameters=parameters, arguments=arguments, buffer=buffer, rank=1)
    )
    subprocess.run(["mpicc", "-shared", "-fPIC", source, "-o", library], check=True)
    script = f'export LD_PRELOAD={library}; exec "$@"'
    done = run(Path("sh"), 2, "-c", script, "sh", str(program), "-i", "2", "-s", "64", test)
    assert done.returncode != 0
    assert f"wrong data: {test}, 64 bytes, 2 ranks" in done.stderr
    assert "rank 1 has" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no test given"),
        *(
            pytest.param(words, message, marks=pytest.mark.slow)
            for words, message in (
                (("letency",), "there is no test letency"),
                (("-s", "6", "reduce"), "adds floats of 4 bytes"),
                (("-s", "4,,8", "bw"), "not a list of bytes"),
                (("-i", "0", "bw"), "not a number from 1 on"),
                (("-m", "omb", "bw"), "choose from osu, imb, skampi"),
            )
        ),
    ],
)
def test_bad_options_are_told(program: Path, words: tuple[str, ...], message: str) -> None:
    done = run(program, 1, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "what to do" in done.stderr


@pytest.mark.slow
def test_a_pair_needs_two(program: Path) -> None:
    done = run(program, 1, "latency")
    assert done.returncode == 2
    assert "needs two ranks" in done.stderr


def test_the_library_s_choices_are_told(program: Path) -> None:
    """The JSON has the MPI library's own switch points and settings."""
    words = ("--json", "-i", "1", "-s", "4", "bcast")
    done = run(program, 2, *words, OMPI_MCA_coll_tuned_bcast_algorithm="6")
    cvars = json.loads(done.stdout)["cvars"]
    assert cvars["coll_tuned_bcast_algorithm"] == 6
    assert cvars["pml"] == "ob1"
