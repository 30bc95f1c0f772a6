# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of the variance, on made-up messages whose truth is known."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from rocelab import stage_table
from rocelab.correlate.variation import FEWEST, Variation, variations

TRIPS = 2000
STAGES = [f"{way}_{name}_ns" for way, names in stage_table.BY_DIRECTION.items() for name in names]


def message(requester: str, frame: int, stages: dict[str, float], **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "requester": requester,
        "dqpn": 17 if requester == "n1" else 18,
        "opcode_name": "RC_SEND_ONLY",
        "payload_bytes": 64,
        "first_frame": frame,
        "clean": True,
        "answered": True,
        "period_ns": None,
    }
    row |= dict.fromkeys(STAGES, 100.0)
    row |= dict.fromkeys((f"answer_{name}" for name in STAGES), None)
    return row | stages | more


def ping_pong(queue: float, icrc: float, rest: float, trips: int = TRIPS) -> pl.DataFrame:
    """Round trips whose queue, icrc and rest vary independently, with these deviations."""
    dice = random.Random(1)
    rows = []
    for number in range(trips):
        waited, checked = dice.gauss(9000, queue), dice.gauss(1000, icrc)
        there = message("n1", 4 * number, {"rx_queue_ns": waited, "rx_reply_ns": 1e9})
        back = message("n2", 4 * number + 2, {"tx_icrc_ns": checked})
        fixed = 100.0 * (2 * len([n for n in STAGES if n != "rx_reply_ns"]) - 2)
        period = waited + checked + fixed + dice.gauss(50_000, rest)
        rows += [there | {"period_ns": period}, back | {"period_ns": period}]
    rows[-2]["period_ns"] = None
    return pl.DataFrame(rows, infer_schema_length=None).cast({"period_ns": pl.Int64})


def shares(variation: Variation) -> dict[str, float]:
    return {part.name: part.share for part in variation.parts}


def test_shares_are_those_of_the_variances() -> None:
    [variation] = variations(ping_pong(queue=300, icrc=100, rest=200))
    assert (variation.payload_bytes, variation.by) == (64, "driver")
    assert [part.name for part in variation.parts[:3]] == ["rx queue", "rest", "tx icrc"]
    truth = {"rx queue": 9 / 14, "rest": 4 / 14, "tx icrc": 1 / 14}
    for name, share in truth.items():
        # without the slowest 1 %, shares of independent parts change a little
        assert shares(variation)[name] == pytest.approx(share, abs=0.05)
    assert sum(shares(variation).values()) == pytest.approx(1)
    assert shares(variation)["tx copy"] == pytest.approx(0, abs=1e-6)
    assert "rx reply" not in shares(variation), "the answer has stages of its own"


def test_if_no_stage_varies_it_is_the_rest() -> None:
    [variation] = variations(ping_pong(queue=0, icrc=0, rest=200))
    assert shares(variation)["rest"] == pytest.approx(1)


def test_the_benchmark_s_times_are_used_if_they_are_of_the_same_messages() -> None:
    messages = ping_pong(queue=300, icrc=100, rest=200)
    times = messages.filter(pl.col("requester") == "n1")["period_ns"].drop_nulls().to_list()
    [ours] = variations(messages, [[1.0], [time + 40 for time in times]], "perftest")
    assert ours.by == "perftest"
    assert ours.mean == pytest.approx(variations(messages)[0].mean + 40)
    shuffled = random.Random(2).sample(times, len(times))
    assert variations(messages, [shuffled], "perftest")[0].by == "driver"
    assert variations(messages, [[*times, 1.0]], "perftest")[0].by == "driver"


def test_a_few_disturbed_stamps_do_not_matter() -> None:
    """Twice the process waits for its processor between its stamp and the driver's."""
    messages = ping_pong(queue=300, icrc=100, rest=200)
    times = messages.filter(pl.col("requester") == "n1")["period_ns"].drop_nulls().to_list()
    for at in (50, 500):
        times[at] -= 5000
        times[at + 1] += 5000
    assert variations(messages, [times], "mpibench")[0].by == "mpibench"


def disturbed(times: list[float], by: float) -> list[float]:
    """These times by stamps each of which is up to `by` ns early."""
    dice = random.Random(3)
    early = [dice.uniform(0, by) for _ in range(len(times) + 1)]
    return [t + early[at] - early[at + 1] for at, t in enumerate(times)]


def test_many_disturbed_stamps_have_a_best_place() -> None:
    """Every stamp is up to 350 ns early, which shifts time from one round trip to the next."""
    messages = ping_pong(queue=300, icrc=100, rest=200, trips=200)
    times = messages.filter(pl.col("requester") == "n1")["period_ns"].drop_nulls().to_list()
    stamped = disturbed(times, 350)
    [ours] = variations(messages, [stamped[40:-9]], "mpibench")
    assert ours.by == "mpibench"
    sums = sorted(stamped[40:-9])[: ours.round_trips]
    assert ours.mean == pytest.approx(sum(sums) / ours.round_trips)


def test_a_place_like_no_other_is_found_among_stamps_that_are_all_disturbed() -> None:
    """A correlation of 0.83, where chance gives at most 0.41."""
    messages = ping_pong(queue=300, icrc=100, rest=200, trips=200)
    times = messages.filter(pl.col("requester") == "n1")["period_ns"].drop_nulls().to_list()
    stamped = disturbed(times, 700)
    assert variations(messages, [stamped[40:-9]], "mpibench")[0].by == "mpibench"
    assert variations(messages, [stamped], "mpibench")[0].by == "driver", "the only place"


def test_one_of_two_places_that_are_alike_is_not_chosen_by_chance() -> None:
    """The same round trips twice, 30 apart: disturbed stamps fit both as badly."""
    messages = ping_pong(queue=300, icrc=100, rest=200, trips=200)
    sent = messages.filter(pl.col("requester") == "n1")["period_ns"].drop_nulls().to_list()
    repeated = [*sent[:30] * 6, *sent[:20]]
    again = iter(repeated)
    periods = [next(again, None) if row == "n1" else None for row in messages["requester"]]
    twice = messages.with_columns(pl.Series("period_ns", periods, dtype=pl.Int64))
    [ours] = variations(twice, [disturbed(repeated, 900)[40:-40]], "mpibench")
    assert ours.by == "driver"


def test_what_the_benchmark_did_not_time_is_left_out() -> None:
    """A check and a warm-up come before, a farewell after."""
    messages = ping_pong(queue=300, icrc=100, rest=200)
    times = messages.filter(pl.col("requester") == "n1")["period_ns"].drop_nulls().to_list()
    [ours] = variations(messages, [times[201:-3]], "mpibench")
    assert (ours.by, ours.round_trips) == ("mpibench", int(0.99 * len(times[201:-3])) + 1)
    sums = sorted(times[201:-3])[: ours.round_trips]
    assert ours.mean == pytest.approx(sum(sums) / ours.round_trips)


def test_a_read_is_a_round_trip_with_its_answer() -> None:
    dice = random.Random(3)
    rows = []
    for number in range(TRIPS):
        sent = dice.gauss(5000, 100)
        answer = dict.fromkeys((f"answer_{name}" for name in STAGES), 0.0)
        row = message("n1", number, answer | {"answer_tx_copy_ns": sent})
        rows.append(row | {"opcode_name": "RC_RDMA_READ_REQUEST", "period_ns": sent + 9000})
    [variation] = variations(pl.DataFrame(rows, infer_schema_length=None))
    assert variation.parts[0].name == "tx copy"
    assert variation.parts[0].share == pytest.approx(1, abs=1e-3)


def test_what_does_not_alternate_is_no_ping_pong() -> None:
    messages = ping_pong(300, 100, 200, trips=100)
    stream = messages.with_columns(
        pl.when(pl.col("requester") == "n2")
        .then(pl.col("first_frame") + 1000)
        .otherwise(pl.col("first_frame"))
        .alias("first_frame")
    )
    assert variations(stream) == []
    assert variations(messages[: 2 * FEWEST - 2]) == []
    assert variations(messages.clear()) == []


def test_disturbed_and_slowest_round_trips_are_left_out() -> None:
    messages = ping_pong(300, 100, 200, trips=1000)
    spoiled = messages.with_columns(
        (pl.col("first_frame") % 40 != 0).alias("clean"),
        pl.when(pl.col("first_frame") == 444)
        .then(1e9)
        .otherwise(pl.col("period_ns"))
        .alias("period_ns"),
    )
    [variation] = variations(spoiled)
    assert variation.round_trips == 899 - 8
    assert shares(variation)["rest"] < 0.5


def test_other_messages_on_the_way_are_part_of_the_round_trip() -> None:
    """UCX sends a long message as two, whose round trip is from the first to the next first."""
    messages = ping_pong(300, 100, 200, trips=500)
    second = messages.with_columns(
        (pl.col("first_frame") + 1).alias("first_frame"),
        pl.lit(8170, pl.Int64).alias("payload_bytes"),
        pl.lit(5000, pl.Int64).alias("period_ns"),
    )
    both, alone = variations(pl.concat([messages, second])), variations(messages)
    assert [variation.payload_bytes for variation in both] == [64, 8170]
    assert both[0].mean == pytest.approx(alone[0].mean + 5000, rel=1e-3)
    assert both[1].mean == pytest.approx(both[0].mean, rel=1e-3)


def test_a_missing_stamp_ends_the_times() -> None:
    messages = ping_pong(300, 100, 200, trips=500)
    cut = messages.with_columns(
        pl.when(pl.col("first_frame") == 400)
        .then(None)
        .otherwise(pl.col("period_ns"))
        .alias("period_ns")
    )
    [variation] = variations(cut)
    assert variation.round_trips == 99
