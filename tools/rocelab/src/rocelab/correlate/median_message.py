# SPDX-License-Identifier: GPL-2.0-or-later
"""The typical message of a join: a real one, the one with the median time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from rocelab.record.message_life import PLACES, SPANS, MessageLife


@dataclass(frozen=True)
class MedianMessage:
    """A message of the capture, and its life."""

    opcode_name: str
    psn: int
    first_frame: int
    answer_frame: int
    life: MessageLife


def median_message(messages: pl.DataFrame) -> MedianMessage | None:
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

    def known_times(names: tuple[str, ...], prefix: str = "") -> dict[str, float]:
        times = {name: row[f"{prefix}{name}_ns"] for name in names}
        return {name: ns for name, ns in times.items() if ns is not None}

    return MedianMessage(
        opcode_name=row["opcode_name"],
        psn=row["psn"],
        first_frame=row["first_frame"],
        answer_frame=row["answer_frame"],
        life=MessageLife(
            requester=row["requester"],
            responder=row["responder"],
            spans=known_times(SPANS),
            stages={place: known_times(stages, f"{place}_") for place, stages in PLACES.items()},
            chosen_from=len(fit),
        ),
    )
