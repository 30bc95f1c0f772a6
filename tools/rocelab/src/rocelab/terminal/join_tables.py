# SPDX-License-Identifier: GPL-2.0-or-later
"""Print a join: shares matched, then what is missing and why, then one message's times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocelab import stage_table
from rocelab.correlate.joined import Joined
from rocelab.correlate.median_message import MedianMessage
from rocelab.correlate.variation import Variation
from rocelab.record.captures import Place
from rocelab.record.message_life import MessageLife
from rocelab.terminal.printable import printable

SENT = {
    "copy": "frames duplicated by the network: the sender sent one packet",
    "damaged": "frames with a wrong ICRC, which match no packet of the sender",
    "not_traced": "frames from a sender without a trace",
    "not_recorded": "frames that the sender's rxedump was set to leave out",
    "record_lost": "frames whose record rxedump reports as lost",
    "before_device": "sent packets dropped before the device: qdisc, netfilter, neighbour",
    "before_capture": "sent packets lost between the device and the capture",
    "dropped": "packets that the sender's driver dropped",
    "loopback": "packets that stayed on their host",
    "ambiguous": "identical frames and records, in unequal numbers",
    "not_captured": "packets that both drivers recorded but the capture lacks",
    "unexplained": "frames with no sender record, for no known reason",
}
RECEIVED = {
    "copy": "packets duplicated by the network after the capture point",
    "dropped": "packets that the receiver's driver dropped on arrival",
    "damaged": "frames with a wrong ICRC, which the receiver drops",
    "not_traced": "frames to a receiver without a trace",
    "not_recorded": "frames that the receiver's rxedump was set to leave out",
    "multicast": "multicast frames: any number of receivers, not joined",
    "behind_capture": "frames lost after the capture, before the receiver's driver",
    "lost_or_record_lost": "frames lost after the capture, or their record lost",
    "loopback": "packets that never left their host",
    "ambiguous": "identical frames and records, in unequal numbers",
    "not_captured": "received packets that the capture lacks",
}
_NAMED = 0.02
"""The smallest share to print."""
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


@dataclass(frozen=True)
class Shown:
    """A place, its join and its typical message."""

    place: Place
    joined: Joined
    typical: MedianMessage | None
    varied: Sequence[Variation] = ()


def share(part: int, whole: int) -> str:
    """Format a share; only all of `whole` is 100 %."""
    if not whole:
        return "-"
    text = f"{100 * part / whole:.2f}"
    if part < whole and text == "100.00":
        text = "99.99"
    return f"{text.rstrip('0').rstrip('.')} %"


def show(captures: Sequence[Shown], console: Console) -> None:
    """Print all tables."""
    console.print(_table(captures))
    for one in captures:
        lines = [*_causes(one), *_troubles(one)]
        if lines:
            console.print()
            console.print(Text(f"without a match in {printable(one.place.name)}", "bold"))
            grid = Table.grid(padding=(0, 1, 0, 0))
            grid.add_column(justify="right", no_wrap=True)
            grid.add_column(overflow="fold")
            for count, text in lines:
                grid.add_row(count, text)
            console.print(grid)
    lives = [(one.place, one.typical.life) for one in captures if one.typical]
    if lives:
        console.print()
        console.print(_lives(lives))
    if any(one.varied for one in captures):
        console.print()
        console.print(_variations(captures))
        console.print(
            "share: cov(part, round trip) / var(round trip); all parts together are 100 %. By: "
            "whose times, the benchmark's own or from send to send by the driver's stamps"
        )


def _table(captures: Sequence[Shown]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("capture", overflow="fold")
    for name in ("frames", "TX", "RX", "resent", "records", "unexplained"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in captures:
        sums = one.joined.sums
        frames = sums["wire"]["frames"]
        table.add_row(
            Text(printable(one.place.name)),
            str(frames),
            share(sums["wire"]["sent"].get("matched", 0), frames),
            share(sums["wire"]["received"].get("matched", 0), frames),
            str(sums["wire"]["again"]),
            str(sums["records"]["tx"] + sums["records"]["rx"]),
            str(sums["unexplained"]),
        )
    return table


def _causes(one: Shown) -> Iterator[tuple[str, Text]]:
    sums = one.joined.sums
    for words, counts in (
        (SENT, sums["wire"]["sent"]),
        (SENT, sums["records"]["tx_alone"]),
        (RECEIVED, sums["wire"]["received"]),
        (RECEIVED, sums["records"]["rx_alone"]),
    ):
        for cause, count in counts.items():
            if cause != "matched":
                yield str(count), Text(words[cause])


def _troubles(one: Shown) -> Iterator[tuple[str, Text]]:
    sums = one.joined.sums
    records = sums["records"]
    for trace, lost in records["lost"].items():
        if lost:
            name = printable(Path(trace).name)
            yield str(lost), Text(f"records that rxedump lost, according to {name}", "yellow")
    for reason, count in records["rejected"].items():
        words = reason.replace("_", " ")
        yield str(count), Text(f"comments not used: {words}", "yellow")
    for key, trouble in (("without_comment", "without comment"), ("cut_headers", "cut too short")):
        if records[key]:
            yield str(records[key]), Text(f"packets in traces {trouble}", "yellow")
    if sums["early"]:
        yield str(sums["early"]), Text("left the window too early: raise --window", "yellow")
    for problem in sums["errors"]:
        text = f"{printable(Path(problem['file']).name)}: {printable(problem['error'])}"
        yield "", Text(text, "bold red")


def _time(ns: float | None) -> str:
    if ns is None:
        return "-"
    for size, unit in _UNITS:
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns"


def _lives(lives: Sequence[tuple[Place, MessageLife]]) -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0),
        title="the median message, from its first stage to the end of its ACK",
        title_justify="left", title_style="bold",
    )  # fmt: skip
    table.add_column("capture", overflow="fold")
    for name in ("total", "sending", "receipt", "answer", "its end", "link"):
        table.add_column(name, justify="right", no_wrap=True)
    for place, life in lives:
        received = sum(
            ns for stage, ns in life.stages["rx"].items() if stage not in stage_table.ANSWERING
        )
        link = life.spans["requester_side"] + life.spans["responder_side"]
        table.add_row(
            # cell names are long; the table above has them in full
            Text(printable(place.name).removeprefix("perftest-")),
            _time(life.spans["requester"]),
            _time(life.length("tx")),
            _time(received),
            _time(life.length("answer_tx")),
            _time(life.length("answer_rx")),
            _time(link),
        )
    return table


def _variations(captures: Sequence[Shown]) -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0),
        title="why round trips of one size differ, without the slowest 1 %",
        title_justify="left", title_style="bold",
    )  # fmt: skip
    table.add_column("capture", overflow="fold")
    for name in ("bytes", "of", "by", "mean", "sd"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("share of the variance", overflow="fold")
    for one in captures:
        for varied in one.varied:
            parts = [part for part in varied.parts if abs(part.share) >= _NAMED]
            table.add_row(
                Text(printable(one.place.name).removeprefix("perftest-")),
                str(varied.payload_bytes),
                str(varied.round_trips),
                varied.by,
                _time(varied.mean),
                _time(varied.deviation),
                ", ".join(f"{part.name} {100 * part.share:.0f} %" for part in parts),
            )
    return table


def as_dict(one: Shown) -> dict[str, Any]:
    """The `--json` object of one place."""
    message = None
    if one.typical:
        life = one.typical.life
        message = {
            "requester": life.requester,
            "responder": life.responder,
            "opcode_name": one.typical.opcode_name,
            "psn": one.typical.psn,
            "first_frame": one.typical.first_frame,
            "answer_frame": one.typical.answer_frame,
            "of": life.chosen_from,
            "spans_ns": dict(life.spans),
            "stages_ns": {place: dict(stages) for place, stages in life.stages.items()},
        }
    return {
        "name": one.place.name,
        "one_clock": one.place.one_clock,
        **one.joined.sums,
        "median_message": message,
        "variations": [
            {
                "payload_bytes": varied.payload_bytes,
                "round_trips": varied.round_trips,
                "by": varied.by,
                "mean_ns": varied.mean,
                "stdev_ns": varied.deviation,
                "parts": [
                    {"part": part.name, "share": part.share, "mean_ns": part.mean}
                    for part in varied.parts
                ],
            }
            for varied in one.varied
        ],
    }
