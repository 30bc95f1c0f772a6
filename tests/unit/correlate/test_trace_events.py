# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab export --perfetto`: what the trace of joined packets must hold."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from command_line import in_process
from rocelab import correlate
from rocelab.correlate.clocks import Offset, offsets
from rocelab.errors import ExitCode
from two_drivers import schedule

ROOT = Path(__file__).parents[3]
_REQUIRED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid"},
    "i": {"name", "ts", "s", "pid", "tid"},
    "M": {"name", "args", "pid", "tid"},
    **{phase: {"name", "cat", "id", "ts", "pid", "tid"} for phase in "stf"},
}
"""Keys of each phase in the Trace Event Format."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    schedule(3, messages=80, faults=0.5).write(folder)
    return folder


def exported(lab: Path, into: Path, *words: str) -> dict[str, Any]:
    traces = [word for node in ("n1", "n2") for word in ("--trace", str(lab / f"{node}.pcapng"))]
    done = in_process(
        "export", str(lab / "wire.pcap"), *traces, "--perfetto", str(into), *words
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{into}\n"
    document: dict[str, Any] = json.loads(into.read_text())
    return document


@pytest.fixture(scope="module")
def trace(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return exported(lab, tmp_path_factory.mktemp("out") / "trace.json")


@pytest.fixture(scope="module")
def packets(lab: Path) -> pl.DataFrame:
    return correlate.join(lab / "wire.pcap", [lab / "n1.pcapng", lab / "n2.pcapng"]).packets


def events(trace: dict[str, Any], phases: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] in phases]


def test_every_event_is_one_of_the_format(trace: dict[str, Any]) -> None:
    assert trace["traceEvents"]
    for event in trace["traceEvents"]:
        assert _REQUIRED[event["ph"]] <= event.keys(), event
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0


def test_slices_of_a_track_nest(trace: dict[str, Any]) -> None:
    """Perfetto refuses slices that overlap without one containing the other."""
    tracks: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for event in events(trace, "X"):
        begin = round(event["ts"] * 1000)
        tracks[event["pid"], event["tid"]].append((begin, begin + round(event["dur"] * 1000)))
    assert len(tracks) >= 4
    for slices in tracks.values():
        open_until: list[int] = []
        for begin, end in sorted(slices, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)


def test_every_record_is_a_slice_and_its_stages_are_inside(
    trace: dict[str, Any], packets: pl.DataFrame
) -> None:
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events(trace, "M")
        if event["name"] == "thread_name"
    }
    whole = [event for event in events(trace, "X") if "args" in event]
    for way, verb in (("tx", "sends"), ("rx", "receives")):
        shown = [e for e in whole if verb in names[e["pid"], e["tid"]]]
        assert len(shown) == packets[f"{way}_ns"].is_not_null().sum()
    icrc = [round(e["dur"] * 1000) for e in events(trace, "X") if e["name"] == "icrc"]
    known = pl.concat([packets["tx_icrc_ns"], packets["rx_icrc_ns"]]).drop_nulls()
    assert Counter(icrc) == Counter(known.filter(known > 0).to_list())


def test_messages_are_flows(trace: dict[str, Any], packets: pl.DataFrame) -> None:
    flows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events(trace, "stf"):
        flows[event["id"]].append(event)
    assert flows
    slices = {(e["pid"], e["tid"], e["ts"]) for e in events(trace, "X") if "args" in e}
    for way in flows.values():
        assert [event["ph"] for event in way] == ["s", *"t" * (len(way) - 2), "f"]
        assert all((event["pid"], event["tid"], event["ts"]) in slices for event in way)
    rows = correlate.messages(packets)
    clean = rows.filter(pl.col("clean") & pl.col("answered"))
    # request sent and received, answer sent and received
    assert sum(len(way) == 4 for way in flows.values()) >= clean.height > 0


def test_drops_and_retransmissions_are_instants(
    trace: dict[str, Any], packets: pl.DataFrame
) -> None:
    shown = Counter(event["name"] for event in events(trace, "i"))
    assert shown["drop: qp_state"] == (packets["rx_drop"] == "qp_state").sum() > 0
    assert shown["lost before the capture"] == (packets["sent"] == "before_capture").sum() > 0
    assert shown["damaged: wrong ICRC"] == (packets["received"] == "damaged").sum() > 0
    assert shown["retransmission"] == (packets["again"] > 0).sum() > 0


def test_what_is_left_out_is_said(lab: Path, tmp_path: Path) -> None:
    document = exported(lab, tmp_path / "few.json", "--packets", "10")
    [about] = document["otherData"]["places"].values()
    assert about["packets"] == 10
    assert about["left out"] > 100


def made(there: int, back: int, clock: int) -> pl.DataFrame:
    """Ten packets each way: `there` and `back` are the fastest, on a node `clock` ns ahead."""
    from rocelab import stage_table

    stages = {f"tx_{name}_ns": [0] * 20 for name in stage_table.IN_TIME["tx"]}
    wire = [1000 * at for at in range(20)]
    return pl.DataFrame(
        {
            "sent": ["matched"] * 20,
            "received": ["matched"] * 20,
            "wire_ns": wire,
            "tx_node": ["n1"] * 10 + [None] * 10,
            "tx_ns": [at - there - at % 3000 // 100 + clock for at in wire[:10]] + [None] * 10,
            "rx_node": [None] * 10 + ["n1"] * 10,
            "rx_ns": [None] * 10 + [at + back + at % 3000 // 100 + clock for at in wire[10:]],
            **stages,
        }
    )


@pytest.mark.parametrize(("there", "back"), [(400, 400), (100, 900), (0, 300)])
@pytest.mark.parametrize("clock", [0, -77_000_000_000, 3_600_000_000_000])
def test_clocks_are_right_within_what_is_said(there: int, back: int, clock: int) -> None:
    offset = offsets(made(there, back, clock), one_clock=False)["n1"]
    assert offset.error_ns is not None
    assert abs(offset.ns + clock) <= offset.error_ns <= (there + back) // 2
    assert offsets(made(there, back, clock), one_clock=True) == {"n1": Offset(0, 0)}


def test_one_direction_alone_has_no_error_bar() -> None:
    sent = made(400, 400, 0).head(10)
    assert offsets(sent, one_clock=False) == {"n1": Offset(400, None)}


def test_where_it_cannot_be_written_is_said(lab: Path, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    done = in_process(
        *("export", str(lab / "wire.pcap"), "--trace", str(lab / "n1.pcapng")),
        *("--perfetto", str(tmp_path / "a file" / "t.json")),
    )
    assert done.returncode == 2
    assert "--perfetto" in done.stderr


@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_folder_is_no_trace(lab: Path, name: str) -> None:
    capture, record = str(lab / "wire.pcap"), str(lab / "n1.pcapng")
    done = in_process("export", capture, "--trace", record, "--perfetto", name)
    assert done.returncode == 2
    assert "cannot be the trace" in done.stderr


def test_only_files_are_replaced(lab: Path, tmp_path: Path) -> None:
    """A named pipe stands for a device: /dev/null, which root could replace."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        words = ("export", str(lab / "wire.pcap"), "--trace", str(lab / "n1.pcapng"))
        done = in_process(*words, "--perfetto", str(path))
        assert done.returncode == ExitCode.USAGE
        assert f"{path} is not a regular file" in done.stderr
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert link.is_symlink()
