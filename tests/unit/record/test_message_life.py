# SPDX-License-Identifier: GPL-2.0-or-later
"""A message's life is read from results as it was written; a life with a part missing is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocelab.record import message_life
from rocelab.record.message_life import PLACES, SPANS, MessageLife

LIFE = MessageLife(
    requester="n1",
    responder="n2",
    spans={name: 1000 + at for at, name in enumerate(SPANS)},
    stages={place: dict.fromkeys(stages, 7) for place, stages in PLACES.items()},
    chosen_from=31,
)


def read_again(life: MessageLife) -> MessageLife | None:
    return message_life.from_values(
        (node, value.metric, value.value) for node, value in life.values()
    )


def test_what_is_written_is_what_is_read() -> None:
    assert read_again(LIFE) == LIFE
    assert all(message_life.is_part(value.metric) for _, value in LIFE.values())


@pytest.mark.parametrize(
    "broken",
    [
        replace(LIFE, spans={**LIFE.spans, "requester": 0}),
        replace(LIFE, spans={**LIFE.spans, "wire": 1e19}),
        replace(LIFE, spans={"requester": 5}),
        replace(LIFE, stages={"tx": LIFE.stages["tx"]}),
    ],
    ids=["no time", "too long", "no spans", "no receiver"],
)
def test_a_life_without_a_needed_part_is_none(broken: MessageLife) -> None:
    assert read_again(broken) is None
