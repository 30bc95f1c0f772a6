# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of faults, from cell.json, whatever that holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rocelab import units
from rocelab.record import read
from rocelab.record.read import Run
from rocelab.report import fault_tables
from synthetic_run import Synthetic

SMALL = Synthetic(transports=("rxe-v2",), tests=("write_bw",), sizes=(64,), repetitions=1)
FAULTS = {
    "mended": [
        {
            "fault": "seven",
            "done": "drop",
            "direction": "to_server",
            "message": 3,
            "packet": 7,
            "psn": 39,
            "found": True,
            "recovered_ns": 2_500_000,
        }
    ],
    "usual_ns": 400_000,
    "sent_again": {"client": 9, "server": 0},
    "causes": {"after_nak": 9},
    "naks": {"psn_sequence_error": 1},
    "driver": {"n1": {"rcvd_seq_err": 1}, "n2": {"out_of_seq_request": 1}},
    "never_met": [],
}


def run_with(tmp_path: Path, faults: Any) -> Run:
    folder = SMALL.write(tmp_path / "run")
    (path,) = folder.glob("cells/*/cell.json")
    cell = json.loads(path.read_text())
    cell["steps"][0]["faults"] = faults
    path.write_text(json.dumps(cell))
    return read.load(folder)


def test_a_row_answers_what_a_fault_cost(tmp_path: Path) -> None:
    section = fault_tables.section(run_with(tmp_path, FAULTS))
    assert section is not None
    ((row,),) = [table.rows for table in section.tables]
    assert row[1:] == (
        "seven: drop",
        "message 3, packet 7, to server",
        "yes",
        "2.50\u202fms",
        "400\u202fµs",
        "9",
        "0",
        "NAK 9",
        "psn_sequence_error 1",
        "n1: rcvd_seq_err 1; n2: out_of_seq_request 1",
    )
    assert any("emulated" in note.text for note in section.notes)


def test_a_fault_that_was_never_mended_has_no_time(tmp_path: Path) -> None:
    lost = {**FAULTS["mended"][0], "recovered_ns": None}  # type: ignore[index]
    section = fault_tables.section(run_with(tmp_path, {**FAULTS, "mended": [lost]}))
    assert section is not None
    assert section.tables[0].rows[0][4] == units.ABSENT


def test_other_values_are_absent(tmp_path: Path) -> None:
    """A stranger's file makes no error, and its names are one line."""
    odd = {"mended": [{"fault": 3, "packet": []}], "causes": {"a\nb": "x\ny"}, "driver": {"n": 1}}
    section = fault_tables.section(run_with(tmp_path, odd))
    assert section is not None
    assert not any("\n" in cell for cell in section.tables[0].rows[0])


def test_a_run_without_faults_has_no_section(tmp_path: Path) -> None:
    assert fault_tables.section(read.load(SMALL.write(tmp_path / "run"))) is None
    assert fault_tables.section(run_with(tmp_path, "none")) is None


def test_a_connection_that_a_fault_ended(tmp_path: Path) -> None:
    ended = {
        **FAULTS,
        "unanswered": {"psn": 39, "tries": 4, "sent": 30, "span_ns": 200_000_000},
        "ended": {"exit_status": 17, "completion_status": 12, "gave_up_ns": 270_000_000},
    }
    section = fault_tables.section(run_with(tmp_path, ended))
    assert section is not None
    (row,) = section.tables[1].rows
    saw = "IBV_WC_RETRY_EXC_ERR (no answer)"
    assert row[1:] == ("270\u202fms", "4", "30", saw, "17")
    strange = {**ended, "unanswered": [], "ended": {"completion_status": 99, "gave_up_ns": "x"}}
    section = fault_tables.section(run_with(tmp_path, strange))
    assert section is not None
    absent = units.ABSENT
    assert section.tables[1].rows[0][1:] == (absent,) * 3 + ("completion status 99", absent)
