# SPDX-License-Identifier: GPL-2.0-or-later
"""rxestat's names of losses, and the dashboard's of metrics, are those of others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
METRICS = (ROOT / "docs/formats/metrics.md").read_text()
CODE = (ROOT / "ebpf/rxestat/stat_metrics.c").read_text()


def driver_names(macro: str) -> list[str]:
    """A list of the driver's record header, in the order of its numbers."""
    header = (ROOT / "kernel/src/rxe_values.h").read_text()
    body = header.split(f"#define {macro}(EM, EML)")[1].split("\n\n")[0]
    return re.findall(r'"(\w+)"', body)


@pytest.mark.parametrize(
    ("ours", "macro"),
    [
        ("retransmit_reasons", "RXE_RETRY_REASONS"),
        ("nak_directions", "RXE_NAK_DIRS"),
        ("rnr_steps", "RXE_RNR_STEPS"),
    ],
)
def test_reasons_are_the_drivers(ours: str, macro: str) -> None:
    """In the same order: the event carries the number."""
    code = (ROOT / "ebpf/rxestat/stat_losses.c").read_text()
    array = code.split(f"{ours}[] = {{")[1].split("}")[0]
    names = driver_names(macro)
    assert re.findall(r'"(\w+)"', array) == names
    assert len(names) > 1


def documented() -> set[str]:
    """The metrics of docs/formats/metrics.md."""
    rows = re.findall(r"^- (`\w+`(?:, `\w+`)*) \(", METRICS, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"\w+", row)} - {"metric"}


def test_documented_metrics_are_those_that_are_written() -> None:
    """Names in the code, with the suffixes of their types."""
    suffix = {"COUNTER": "_total", "INFO": "_info", "GAUGE": "", "HISTOGRAM": ""}
    families = re.findall(r'metrics_family\(\s*&?m,\s*"(\w+)",\s*METRIC_(\w+)', CODE)
    families += [(name, "COUNTER") for name in re.findall(r'\{LOSS_\w+, "(\w+)"', CODE)]
    written = {name + suffix[kind] for name, kind in families}
    assert len(written) == len(families) > 12
    assert written == documented()


def test_the_dashboard_asks_for_known_metrics() -> None:
    """Each expression, and each variable."""
    dashboard = json.loads((ROOT / "ebpf/grafana/rxe.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [v["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    assert len(asked) > 15
    for expression in asked:
        names = set(re.findall(r"\b(?:rxe|process)_\w+", expression))
        assert names, expression
        bare = {re.sub(r"(?<=seconds)_(bucket|count|sum)$", "", name) for name in names}
        assert bare <= documented(), expression
    howto = (ROOT / "docs/howto/watch.md").read_text()
    for name in re.findall(r"\brxe_\w+", howto):
        assert re.sub(r"(?<=seconds)_(bucket|count|sum)$", "", name) in documented(), name
