# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab --check`: a wrong change is found and named, one that changes nothing is equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import injected
from command_line import in_process as rocelab
from injected import Edit, costlier, plan
from requirements import missing
from rocelab.errors import ExitCode

FETCH_ADD = "test_atomic_fetch_and_add"
WRONG_REPLY = Edit("rxe_resp.c", "if (err)", "res->atomic.orig_val++;", "&res->atomic.orig_val);")
"""An atomic operation answers with another value than that which was there."""
COMPLAINT = Edit(
    "rxe_recv.c",
    "reason = RXE_DROP_OPCODE;",
    "WARN_ON_ONCE(pkt->opcode > 0x1d && pkt->opcode < 0x20);",
)
"""No program sends such opcodes; a spoilt frame has one now and then."""


def checked(folder: Path, *edits: Edit) -> tuple[int, dict[str, Any]]:
    """Exit code and document of the command, with a patch of these edits."""
    mine = injected.write(folder / "mine", [*edits])
    words = ["ab", "--check", "instrumented", str(mine), "--plan", str(plan(folder, "rxe-v2"))]
    done = rocelab(*words, "--rounds", "1", "--out", str(folder), "--json")
    if done.returncode == ExitCode.MISSING:
        missing(done.stderr)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert json.loads(next(folder.glob("*-ab/ab.json")).read_text()) == document
    return done.returncode, document


@pytest.mark.long
def test_a_wrong_change(tmp_path: Path) -> None:
    """A test that fails and a complaint are named, of the side that has them."""
    code, document = checked(tmp_path, WRONG_REPLY, COMPLAINT)
    check = document["check"]
    assert code == ExitCode.FINDINGS
    assert not check["good"]
    differing = {row["test"].rpartition(".")[2]: row for row in check["differing"]}
    assert FETCH_ADD in differing, document["sentence"]
    assert all("atomic" in name for name in differing), differing
    assert differing[FETCH_ADD]["base"] == "pass"
    assert differing[FETCH_ADD]["change"] in {"fail", "error"}
    (trouble,) = check["troubles"]
    assert (trouble["side"], trouble["during"]) == ("change", "hostile frames")
    assert "WARNING: " in trouble["lines"][0]
    assert "[rdma_rxe]" in trouble["lines"][0]
    assert FETCH_ADD in document["sentence"]
    assert trouble["lines"][0] in document["sentence"]


@pytest.mark.long
def test_a_change_of_nothing(tmp_path: Path) -> None:
    """Both sides pass the same tests, and take every frame."""
    code, document = checked(tmp_path, costlier(("tx", "icrc"), 0))
    check = document["check"]
    assert check["good"], document["sentence"]
    assert min(side["pass"] for side in check["tests"].values()) >= 90
    assert check["frames"] == {"base": 10_000, "change": 10_000}
    said = "rdma-core's tests equal; 10^4 hostile frames: no complaint"
    assert document["sentence"].endswith(said)
    # one round may take a difference of chance for a cost
    assert code == (ExitCode.FINDINGS if document["beyond"] else ExitCode.OK)
