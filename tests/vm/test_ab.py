# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab`: a planted cost is found, located and sized; a patch that changes nothing is not."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import vmlab
from command_line import in_process as rocelab
from requirements import missing
from rocelab.errors import ExitCode
from rocelab.testbed import artifacts

PLAN = """
[plan]
name = "ab"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat"]
[testbed]
provider = "veth"
line = "LINE"
icount = true
mtu = 4200
[[benchmark]]
tool = "perftest"
test = "send_lat"
sizes = [64]
iterations = 300
qp_timeout = 18
events = true
"""
PLANTED = 100
_FUNCTION = "void rxe_icrc_generate("


def patch(file: Path, line: str, earlier: Sequence[str]) -> None:
    """Write a patch that adds a line to the function that makes ICRCs, after those added so far."""
    source = artifacts.driver(vmlab.LINE).module.parent / "tree/drivers/infiniband/sw/rxe"
    lines = (source / "rxe_icrc.c").read_text().splitlines()
    at = next(i for i, text in enumerate(lines) if text.startswith(_FUNCTION))
    here = lines.index("", at) + 1  # behind the declarations
    lines[here:here] = [f"\t{text}" for text in earlier]
    here += len(earlier)
    context = [f" {text}" for text in lines[here - 3 : here + 3]]
    path = "drivers/infiniband/sw/rxe/rxe_icrc.c"
    head = (f"--- a/{path}", f"+++ b/{path}", f"@@ -{here - 2},6 +{here - 2},7 @@")
    file.write_text("\n".join((*head, *context[:3], f"+\t{line}", *context[3:], "")))


def in_icrc(folder: Path, *lines: str) -> Path:
    """Write a folder with a patch for each line."""
    folder.mkdir()
    for number, line in enumerate(lines, start=1):
        patch(folder / f"{number:04}-Step.patch", line, lines[: number - 1])
    return folder


def compared(folder: Path, base: str, change: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document of the command."""
    plan = folder / "small.toml"
    plan.write_text(PLAN.replace("LINE", vmlab.LINE))
    words = ["ab", base, change, "--plan", str(plan), "--out", str(folder), "--json", *options]
    done = rocelab(*words)
    if done.returncode == ExitCode.MISSING:
        missing(done.stderr)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    run = next(folder.glob("*-ab"))
    assert json.loads((run / "ab.json").read_text()) == document
    assert (run / "ab.svg").exists() == bool(document["moved"])
    return done.returncode, document


NOPS = f'asm volatile(".rept {PLANTED}; nop; .endr");'


def test_a_planted_cost_is_located_and_sized(tmp_path: Path) -> None:
    """Only the ICRC of sent packets moved, of SENDs and their ACKs, at both ends."""
    mine = in_icrc(tmp_path / "mine", NOPS)
    code, found = compared(tmp_path, "instrumented", str(mine), "--threshold", "5")
    assert code == ExitCode.FINDINGS
    moved = [stage for stage in found["stages"] if stage["moved"]]
    assert {(s["direction"], s["stage"], s["opcode"], s["node"]) for s in moved} == {
        ("tx", "icrc", opcode, node) for opcode in ("SEND", "ACKNOWLEDGE") for node in ("n1", "n2")
    }
    for stage in moved:
        assert stage["unit"] == "instructions"
        assert abs(stage["difference"] - PLANTED) <= PLANTED / 100
    sentence = r"icrc of sent packets \+100 instructions \(.* %\); nothing else moved"
    assert re.fullmatch(sentence, found["sentence"])
    assert found["beyond"] == found["moved"] == 4


@pytest.mark.long
def test_a_patch_that_changes_nothing(tmp_path: Path) -> None:
    """Two builds of the same code cost the same, to the instruction."""
    mine = in_icrc(tmp_path / "mine", "/* nothing */")
    code, found = compared(tmp_path, "instrumented", str(mine))
    assert code == ExitCode.OK
    assert re.fullmatch(r"no difference in any of \d+ stages", found["sentence"])


@pytest.mark.long
def test_the_first_patch_of_a_series(tmp_path: Path) -> None:
    """The second of three patches is found; the base is measured once."""
    mine = in_icrc(tmp_path / "mine", "/* one */", NOPS, "/* three */")
    code, found = compared(tmp_path, "instrumented", str(mine), "--bisect", "--threshold", "5")
    assert code == ExitCode.FINDINGS
    assert found["first"] == "0002-Step.patch"
    assert len(list(tmp_path.glob("*-ab/*-base"))) == 1
