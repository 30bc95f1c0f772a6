# SPDX-License-Identifier: GPL-2.0-or-later
"""Every copy of the BTH opcode table is the one of crates/roce/opcodes.csv."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

from corpus import frames
from requirements import need_program
from rocelab import _core

ROOT = Path(__file__).resolve().parents[2]
LETTERS = {"RDETH": "E", "DETH": "D", "XRCETH": "X", "FETH": "F", "RETH": "R", "AtomicETH": "T",
           "AETH": "A", "AtomicAckETH": "O", "ImmDt": "I", "IETH": "V", "CNP": "C"}  # fmt: skip


def master() -> dict[int, dict[str, str]]:
    text = (ROOT / "tools/rocelab/crates/roce/opcodes.csv").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {int(row["code"], 0): row for row in csv.DictReader(lines)}


def test_core() -> None:
    assert dict(_core.opcodes()) == {code: row["name"] for code, row in master().items()}


def test_generators() -> None:
    for code, row in master().items():
        headers = "".join(LETTERS[header] for header in row["headers"].split())
        assert frames.OPCODES[row["name"]] == (code, headers)
    assert len(frames.OPCODES) == len(master())


def test_probes(tmp_path: Path) -> None:
    """ebpf/lib/bth.c, compiled and asked."""
    need_program("cc")
    source = tmp_path / "print.c"
    source.write_text(
        '#include <stdio.h>\n#include "bth.h"\n'
        "int main(void) { for (size_t i = 0; i < bth_opcodes_len; i++) "
        'printf("%d %s\\n", bth_opcodes[i].opcode, bth_opcodes[i].name); }\n'
    )
    program = tmp_path / "print"
    lib = ROOT / "ebpf/lib"
    subprocess.run(["cc", "-I", lib, source, lib / "bth.c", "-o", program], check=True, timeout=60)
    text = subprocess.run([program], check=True, capture_output=True, text=True, timeout=10).stdout
    rows = dict(line.split() for line in text.splitlines())
    assert rows == {str(code): row["name"] for code, row in master().items()}
