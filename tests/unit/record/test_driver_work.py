# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's work for one message, by kind."""

from __future__ import annotations

import polars as pl
import pytest

from rocelab import metrics
from rocelab.record import driver_work

MESSAGES = 10


def rows(
    *stages: tuple[str, str, str, float, float], repetitions: int = 1, accelerator: str = "icount"
) -> pl.DataFrame:
    """Results of (direction, stage, opcode class, typical, count), sent by n1; means are double."""
    values = []
    for repetition in range(1, repetitions + 1):
        made = {(metrics.MESSAGES, ""): float(MESSAGES)}
        for direction, stage, opcode, typical, count in stages:
            for figure, value in (("typical", typical), ("mean", 2 * typical), ("count", count)):
                made[metrics.Stage(direction, stage, figure).name, opcode] = value
        values += [
            {
                "node": "n1",
                "repetition": repetition,
                "metric": metric,
                "kind": kind,
                "value": value,
                "accelerator": accelerator,
            }
            for (metric, kind), value in made.items()
        ]
    return pl.DataFrame(values)


def test_stages_of_all_packets_are_added() -> None:
    """A message has a packet, every second message an acknowledgement."""
    step = rows(
        ("tx", "bth", "SEND", 100, MESSAGES),
        ("tx", "icrc", "SEND", 1000, MESSAGES),
        ("tx", "icrc", "ACKNOWLEDGE", 500, MESSAGES / 2),
        ("rx", "parse", "ACKNOWLEDGE", 300, MESSAGES / 2),
        ("tx", "copy", "SEND", 70, MESSAGES),
        ("tx", "alloc", "SEND", 60, MESSAGES),
        ("rx", "cqe", "SEND", 50, MESSAGES),
    )
    parts = driver_work.by_kind(step, 4000)
    assert parts == {
        "headers": 250,
        "icrc": 1250,
        "copy": 70,
        "buffers": 60,
        "requests": 50,
        "between": 4000 - 1680,
    }


def test_waits_answers_and_the_network_are_not_the_driver_s_work() -> None:
    step = rows(
        *(("rx", name, "SEND", 9999, MESSAGES) for name in ("queue", "reply")),
        ("tx", "xmit", "SEND", 9999, MESSAGES),
        ("tx", "bth", "SEND", 100, MESSAGES),
    )
    parts = driver_work.by_kind(step, 1000)
    assert (parts["headers"], parts["between"]) == (100, 900)


@pytest.mark.parametrize("repetitions", [1, 3])
def test_repetitions_do_not_add_up(repetitions: int) -> None:
    step = rows(("tx", "bth", "SEND", 100, MESSAGES), repetitions=repetitions)
    assert driver_work.by_kind(step, 1000)["headers"] == 100


def test_times_are_means() -> None:
    step = rows(("tx", "bth", "SEND", 100, MESSAGES), accelerator="kvm")
    assert driver_work.by_kind(step, 1000)["headers"] == 200


def test_nothing_without_stages_or_messages() -> None:
    assert driver_work.by_kind(rows(), 1000) == {}
    assert driver_work.by_kind(rows().clear(), 1000) == {}
    step = rows(("tx", "bth", "SEND", 100, MESSAGES))
    assert driver_work.by_kind(step.filter(pl.col("metric") != metrics.MESSAGES), 1000) == {}
    assert driver_work.by_kind(step.filter(~pl.col("metric").str.ends_with("typical")), 1) == {}
