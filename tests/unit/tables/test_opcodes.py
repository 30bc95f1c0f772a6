# SPDX-License-Identifier: GPL-2.0-or-later
"""Every copy of the BTH opcode table agrees with tables/opcodes.csv."""

from __future__ import annotations

import subprocess
from pathlib import Path

import shared_table
from corpus import frames
from requirements import need_program
from rocelab import _core

ROOT = Path(__file__).resolve().parents[3]
LETTERS = {"RDETH": "E", "DETH": "D", "XRCETH": "X", "FETH": "F", "RETH": "R", "AtomicETH": "T",
           "AETH": "A", "AtomicAckETH": "O", "ImmDt": "I", "IETH": "V", "CNP": "C"}  # fmt: skip


def master() -> dict[int, dict[str, str]]:
    return {int(row["code"], 0): row for row in shared_table.rows("opcodes")}


def test_core() -> None:
    assert dict(_core.opcodes()) == {code: row["name"] for code, row in master().items()}


def test_generators() -> None:
    for code, row in master().items():
        headers = "".join(LETTERS[header] for header in row["headers"].split())
        assert frames.OPCODES[row["name"]] == (code, headers)
    assert len(frames.OPCODES) == len(master())


def test_every_class_has_a_name_and_opcodes() -> None:
    classes = [row["class"] for row in shared_table.rows("opcode_classes")]
    assert len(set(classes)) == len(classes)
    assert set(classes) == {row["class"] for row in master().values()}


def test_probes(tmp_path: Path) -> None:
    """Compile ebpf/lib/bth.c with the headers that its Makefile generates; print its table."""
    need_program("cc")
    need_program("make")
    ebpf = ROOT / "ebpf"
    subprocess.run(["make", "-s", "-C", ebpf, f"O={tmp_path}", "tables"], check=True, timeout=300)
    source = tmp_path / "print.c"
    source.write_text(
        '#include <stdio.h>\n#include "bth.h"\n'
        "int main(void) { for (int op = 0; op < 256; op++) if (bth_name(op)) "
        'printf("%d %s %s %d\\n", op, bth_name(op), bth_class_name(bth_class_of(op)), '
        "bth_is_response(op)); }\n"
    )
    program = tmp_path / "print"
    argv: list[str | Path] = ["cc", "-std=gnu11", "-o", program, source, ebpf / "lib/bth.c"]
    argv += [f"-I{ebpf / 'lib'}", f"-I{tmp_path / 'obj/tables'}"]
    subprocess.run(argv, check=True, timeout=300)
    text = subprocess.run([program], check=True, capture_output=True, text=True, timeout=300).stdout
    classes = {row["class"]: row for row in shared_table.rows("opcode_classes")}
    expected = [
        f"{code} {row['name']} {classes[row['class']]['name']} "
        f"{int(classes[row['class']]['response'] == 'yes')}"
        for code, row in sorted(master().items())
    ]
    assert text.splitlines() == expected
