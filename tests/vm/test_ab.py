# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab`: an injected cost is found, located and sized; a patch without effect is not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import injected
import vmlab
from command_line import in_process as rocelab
from injected import Edit, costlier, nops, plan
from requirements import missing
from rocelab.errors import ExitCode
from rocelab.measure import driver_turns
from rocelab.plans.plan import Plan
from rocelab.testbed import artifacts
from rocelab.testbed.by_name import VirtualTestbed

INJECTED = 100
ICRC = ("tx", "icrc")


class Shared(driver_turns.Machines):
    """Machines that outlive a command, so that the next one need not boot them."""

    def __init__(self, plan: Plan, say: driver_turns.Say) -> None:
        super().__init__(plan, say)
        self._up, self._locks = POOL, LOCKS

    def down(self) -> None:
        """They stay until the last test has ended."""


POOL: dict[tuple[str, int], VirtualTestbed] = {}
LOCKS = ExitStack()


@pytest.fixture(scope="module", autouse=True)
def machines() -> Iterator[None]:
    """All commands of this file use the same machines."""
    with pytest.MonkeyPatch.context() as patch, LOCKS:
        patch.setattr(driver_turns, "Machines", Shared)
        yield
        while POOL:
            POOL.popitem()[1].down()


def compared(
    folder: Path, base: str, change: str, *options: str, transports: tuple[str, ...] = ("rxe-v2",)
) -> tuple[int, dict[str, Any]]:
    """Exit code and document of the command."""
    file = plan(folder, *transports)
    words = ["ab", base, change, "--plan", str(file), "--out", str(folder), "--json", *options]
    done = rocelab(*words)
    if done.returncode == ExitCode.MISSING:
        missing(done.stderr)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    run = next(folder.glob("*-ab"))
    assert json.loads((run / "ab.json").read_text()) == document
    assert (run / "ab.svg").exists() == bool(document["moved"])
    return done.returncode, document


def moved(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The stages that moved."""
    return [stage for stage in document["stages"] if stage["moved"]]


def check_icrc(document: dict[str, Any], transports: tuple[str, ...] = ("rxe-v2",)) -> None:
    """Only the ICRC of sent packets moved, of SENDs and their ACKs, at both ends."""
    stages = moved(document)
    assert {
        (s["direction"], s["stage"], s["opcode"], s["node"], s["transport"]) for s in stages
    } == {
        ("tx", "icrc", opcode, node, transport)
        for opcode in ("SEND", "ACKNOWLEDGE")
        for node in ("n1", "n2")
        for transport in transports
    }
    for stage in stages:
        assert stage["unit"] == "instructions"
        assert abs(stage["difference"] - INJECTED) <= INJECTED / 100
    sentence = r"icrc of sent packets \+100 instructions \(.* %\); nothing else moved"
    assert re.fullmatch(sentence, document["sentence"])
    assert document["counters"] == []


def test_a_injected_cost_is_located_and_sized(tmp_path: Path) -> None:
    """100 instructions more in one stage."""
    mine = injected.write(tmp_path / "mine", [costlier(ICRC, INJECTED)])
    code, document = compared(tmp_path, "instrumented", str(mine), "--threshold", "5")
    assert code == ExitCode.FINDINGS
    check_icrc(document)
    assert document["beyond"] == document["moved"] == 4


@pytest.mark.long
def test_a_patch_that_changes_nothing(tmp_path: Path) -> None:
    """Two builds of the same code cost the same, to the instruction."""
    mine = injected.write(tmp_path / "mine", [costlier(ICRC, 0)])
    code, document = compared(tmp_path, "instrumented", str(mine))
    assert code == ExitCode.OK
    assert re.fullmatch(r"no difference in any of \d+ stages", document["sentence"])


@pytest.mark.long
def test_the_first_patch_of_a_series(tmp_path: Path) -> None:
    """The second of three patches is found; the base is measured once."""
    steps = [[costlier(ICRC, count)] for count in (0, INJECTED, 0)]
    mine = injected.write(tmp_path / "mine", *steps)
    code, document = compared(tmp_path, "instrumented", str(mine), "--bisect", "--threshold", "5")
    assert code == ExitCode.FINDINGS
    assert document["first"] == "0002-Step.patch"
    assert len(list(tmp_path.glob("*-ab/*-base"))) == 1


def test_a_tree_that_does_not_fit(tmp_path: Path) -> None:
    """The error names the tree, its version, and the patch that does not apply, before any boot."""
    tree = tmp_path / "linux"
    pristine = artifacts.driver(vmlab.LINE).module.parent / "pristine" / injected.FOLDER
    shutil.copytree(pristine, tree / injected.FOLDER)
    for file in (tree / injected.FOLDER).glob("*.c"):
        file.write_text(file.read_text().replace("skb", "socket_buffer"))
    (tree / "Makefile").write_text(
        "VERSION = 9\nPATCHLEVEL = 8\nSUBLEVEL = 0\nEXTRAVERSION = -rc7\n"
    )
    git(tree, "init", "-q", "-b", "main")
    commit(tree)
    done = rocelab("lines", f"tree:{tree}@main", "--out", str(tmp_path))
    if done.returncode == ExitCode.MISSING:
        missing(done.stderr)
    assert done.returncode == ExitCode.USAGE
    said = " ".join(done.stderr.split())
    assert f"the driver of {tree}@main does not fit kernel line {vmlab.LINE}" in said
    assert re.search(
        r"[0-9]{4}-RDMA-rxe-\S+\.patch does not apply to rxe 9\.8\.0-rc7, git tree", said
    )
    assert "/rocelab/" not in said
    assert not list(tmp_path.glob("*-lines"))


@pytest.mark.long
def test_a_commit_of_a_git_tree(tmp_path: Path) -> None:
    """Two commits of the kernel's own source, over both RoCE versions; the series comes on top."""
    tree, both = tmp_path / "linux", ("rxe-v1", "rxe-v2")
    pristine = artifacts.driver(vmlab.LINE).module.parent / "pristine" / injected.FOLDER
    shutil.copytree(pristine, tree / injected.FOLDER)
    git(tree, "init", "-q", "-b", "main")
    commit(tree)
    file = tree / injected.FOLDER / "rxe_icrc.c"
    text = file.read_text()
    head, anchor, rest = text.partition("void rxe_icrc_generate(")
    first, assignment, rest = rest.partition("\ticrcp = (")
    assert assignment
    file.write_text(f"{head}{anchor}{first}\t{nops(INJECTED)}\n{assignment}{rest}")
    commit(tree)
    sides = (f"tree:{tree}@main~1", f"tree:{tree}@main")
    code, document = compared(tmp_path, *sides, transports=both)
    assert code == ExitCode.FINDINGS
    check_icrc(document, both)


def git(tree: Path, *words: str) -> None:
    """Run git there, as somebody."""
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", "-C", str(tree), *who, *words], check=True, capture_output=True)


def commit(tree: Path) -> None:
    """Commit all that there is."""
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "a commit")


DELAY_NS = 100_000


@pytest.mark.long
def test_a_delay_by_a_module_parameter(tmp_path: Path) -> None:
    """A machine that counts executes an instruction in each ns."""
    change = f"delay+parameter:delay_stage=tx.icrc+parameter:delay_ns={DELAY_NS}"
    code, document = compared(tmp_path, "delay", change)
    assert code == ExitCode.FINDINGS
    assert {(stage["direction"], stage["stage"]) for stage in moved(document)} == {ICRC}
    for stage in moved(document):
        assert abs(stage["difference"] - DELAY_NS) <= DELAY_NS / 100


@pytest.mark.long
def test_a_lost_ack(tmp_path: Path) -> None:
    """The responder forgets each 50th ACK of a queue pair: the requester sends again."""
    forget = "if (pkt->psn % 50 == 25) return RESPST_CLEANUP;"
    edit = Edit("rxe_resp.c", "if (qp->resp.aeth_syndrome != AETH_ACK", forget, " acknowledge(")
    mine = injected.write(tmp_path / "mine", [edit])
    code, document = compared(tmp_path, "instrumented", str(mine))
    assert code == ExitCode.FINDINGS
    counted = {(c["node"], c["counter"]): c["difference"] for c in document["counters"]}
    # of 300 messages, whatever the first PSN is
    names = ("completer_retry_err", "duplicate_request", "sent SEND")
    assert counted == {(node, name): 300 / 50 for node in ("n1", "n2") for name in names}
    assert (
        "the driver counts completer_retry_err +12, duplicate_request +12" in document["sentence"]
    )


@pytest.mark.long
def test_another_kernel_line(tmp_path: Path) -> None:
    """Each has its own machine; 7.x computes the ICRC by crc32_le(), not by the crypto API."""
    code, document = compared(tmp_path, f"line:{vmlab.LINE}", "line:7.x")
    assert code == ExitCode.FINDINGS
    assert ICRC in {(stage["direction"], stage["stage"]) for stage in moved(document)}


@pytest.mark.long
def test_costs_side_by_side(tmp_path: Path) -> None:
    """`rocelab lines` with two drivers of one line: table, figure and numbers."""
    file = plan(tmp_path, "rxe-v1", "rxe-v2")
    words = ["--plan", str(file), "--rounds", "1", "--out", str(tmp_path), "--json"]
    done = rocelab("lines", "instrumented", "delay", *words)
    assert done.returncode == ExitCode.OK, done.stderr
    document = json.loads(done.stdout)
    folder = next(tmp_path.glob("*-lines"))
    assert json.loads((folder / "lines.json").read_text()) == document
    assert "<svg" in (folder / "lines.svg").read_text()
    assert document["unit"] == "instructions"
    assert [one["side"] for one in document["drivers"]] == ["instrumented", "delay"]
    for one in document["drivers"]:
        v1, v2 = (packet["stages"] for packet in one["packets"])
        assert v1["tx.icrc"] > 100
        assert v1["tx.route"] < v2["tx.route"], "v1 finds no route"
        assert "rx.queue" not in v1
        row = f"| tx icrc | {v1['tx.icrc']:,.0f} |"
        assert row in (folder / "lines.md").read_text() or one["side"] == "delay"
