# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages and spans of one typical message through both drivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from rocelab import stage_table

SPANS = (
    "requester", "wire", "responder", "requester_side", "responder_side", "between", "there",
    "back", "period", "on_the_way",
)  # fmt: skip
"""Spans of time, each within one clock (docs/formats/join.md)."""


@dataclass(frozen=True)
class Life:
    """A message's times in ns; what was not measured is absent."""

    requester: str
    responder: str
    opcode_name: str
    psn: int
    first_frame: int
    answer_frame: int
    spans: Mapping[str, int]
    """By the names of `SPANS`."""
    stages: Mapping[str, Mapping[str, int]]
    """Stages of the request (`tx`, `rx`) and of its answer (`answer_tx`, `answer_rx`)."""
    of: int
    """Number of messages that it was chosen from."""


def median_life(messages: pl.DataFrame) -> Life | None:
    """Return the message with the median time on the requester's clock (the lower of two).

    It is chosen from undisturbed messages of one packet that have their own answer; None if there
    is none.
    """
    fit = messages.filter(
        pl.col("clean")
        & pl.col("answered")
        & (pl.col("packets") == 1)
        & pl.col("requester_side_ns").is_not_null()
        & pl.col("between_ns").is_not_null()
    ).sort("requester_ns", "first_frame")
    if fit.is_empty():
        return None
    row: dict[str, Any] = fit.row((len(fit) - 1) // 2, named=True)
    stages = {}
    for place, names in stage_table.BY_DIRECTION.items():
        for whose in ("", "answer_"):
            known = {
                stage: row[f"{whose}{place}_{stage}_ns"] for stage in (*names, stage_table.GAP)
            }
            stages[whose + place] = {
                stage: int(ns) for stage, ns in known.items() if ns is not None
            }
    spans = {name: row[f"{name}_ns"] for name in SPANS}
    return Life(
        requester=row["requester"],
        responder=row["responder"],
        opcode_name=row["opcode_name"],
        psn=row["psn"],
        first_frame=row["first_frame"],
        answer_frame=row["answer_frame"],
        spans={name: int(ns) for name, ns in spans.items() if ns is not None},
        stages=stages,
        of=len(fit),
    )
