# SPDX-License-Identifier: GPL-2.0-or-later
"""faults.json: written, read again, and refused when a stranger changed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocelab.directory import Directory
from rocelab.record import faults_document
from rocelab.record.faults_document import Event

EVENTS = (
    Event("seven", "drop", "to_server", 5, 1, 16777215, 3, 7),
    Event("flap", "lost", "to_client", 6, None, None, None, None),
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    faults_document.write(tmp_path, EVENTS, {"to_server": 10, "to_client": 4})
    with Directory.open(tmp_path) as step:
        assert faults_document.read(step) == EVENTS


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "rocelab.faults/9"},
        {"events": {}},
        {"events": ["x"]},
        {"events": [{"fault": "x"}]},
        {"events": [{**EVENTS[0].__dict__, "psn": "7"}]},
        {"events": [{**EVENTS[0].__dict__, "psn": True}]},
        {"events": [{**EVENTS[0].__dict__, "fault": 3}]},
        {"events": [{**EVENTS[0].__dict__, "time_ns": None}]},
        {"events": [{**EVENTS[0].__dict__, "more": 1}]},
    ],
)
def test_other_content_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    content = {"schema": faults_document.SCHEMA, "frames": {}, "events": [], **change}
    (tmp_path / "faults.json").write_text(json.dumps(content))
    with Directory.open(tmp_path) as step, pytest.raises(ValueError, match=r"not |event"):
        faults_document.read(step)
