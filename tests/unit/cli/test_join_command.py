# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab join` for people and for scripts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from json_keys import keys
from rocelab.cli.annotate import annotate
from rocelab.cli.export import export
from rocelab.cli.join import join
from rocelab.correlate import find
from rocelab.errors import ExitCode, UsageError
from rocelab.terminal import join_tables
from two_drivers import Lab, schedule

ROOT = Path(__file__).parents[3]


def run(*words: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(join, [str(word) for word in words])


def run_export(*words: str | Path) -> Result:
    return CliRunner().invoke(export, [str(word) for word in words])


def run_annotate(*words: str | Path) -> Result:
    return CliRunner().invoke(annotate, [str(word) for word in words])


def cell(folder: Path, lab: Lab, provider: str = "qemu") -> Path:
    """A run folder with one cell of one size, and another cell without traces."""
    (folder / "run.json").write_text(
        json.dumps({"schema": "rocelab.run/1", "plan": {"testbed": {"provider": provider}}}),
        "utf-8",
    )
    place = folder / "cells" / "perftest-write_lat.rxe-v2.r01" / "64"
    place.mkdir(parents=True)
    lab.write(place)
    other = folder / "cells" / "qperf-tcp_lat.tcp.r01" / "64"
    other.mkdir(parents=True)
    (other / "wire.pcap").write_bytes((place / "wire.pcap").read_bytes())
    return place


def test_join_takes_a_run_a_cell_a_size_or_a_capture(tmp_path: Path) -> None:
    place = cell(tmp_path, schedule(1, messages=20, faults=0))
    for where in (tmp_path, place.parent, place):
        result = run("--json", where)
        assert result.exit_code == ExitCode.OK, result.output
        document = json.loads(result.stdout)
        assert document["schema"] == "rocelab.join/1"
        (one,) = document["places"]
        assert one["wire"]["frames"] == 40
        assert one["one_clock"] is False
    traces = [word for node in ("n1", "n2") for word in ("--trace", place / f"{node}.pcapng")]
    (one,) = json.loads(run("--json", place / "wire.pcap", *traces).stdout)["places"]
    assert one["wire"]["sent"] == {"matched": 40}


def test_the_provider_decides_whether_nodes_share_a_clock(tmp_path: Path) -> None:
    place = cell(tmp_path, schedule(1, messages=2, faults=0), provider="veth")
    assert [one.one_clock for one in find(tmp_path)] == [True]
    assert [one.one_clock for one in find(place)] == [True]


def test_output_fits_the_screen_and_names_every_cause(tmp_path: Path) -> None:
    cell(tmp_path, schedule(3, messages=80, faults=0.5))
    result = run(tmp_path)
    assert result.exit_code == ExitCode.OK
    assert max(map(len, result.stdout.splitlines())) <= 80, result.output
    (one,) = json.loads(run("--json", tmp_path).stdout)["places"]
    for words, counts in (
        (join_tables.SENT, one["wire"]["sent"]),
        (join_tables.SENT, one["records"]["tx_alone"]),
        (join_tables.RECEIVED, one["wire"]["received"]),
        (join_tables.RECEIVED, one["records"]["rx_alone"]),
    ):
        for cause, count in counts.items():
            if cause != "matched":
                assert f" {count} {words[cause]}" in " ".join(result.output.split())


def test_an_unexplained_frame_is_a_finding(tmp_path: Path) -> None:
    lab = schedule(1, messages=20, faults=0)
    del lab.trace["a"].packets[2]
    cell(tmp_path, lab)
    result = run(tmp_path)
    assert result.exit_code == ExitCode.FINDINGS
    assert "no known reason" in result.output
    assert "97.5 %" in result.output


@pytest.mark.parametrize("what", ["empty", "untraced", "absent"])
def test_a_path_with_nothing_to_join_is_refused(tmp_path: Path, what: str) -> None:
    for name in ("run", "empty"):
        (tmp_path / name).mkdir()
    place = cell(tmp_path / "run", Lab(1))
    where = {
        "empty": tmp_path / "empty",
        "untraced": place / "wire.pcap",
        "absent": tmp_path / "absent",
    }[what]
    with pytest.raises(UsageError) as caught:
        find(where)
    assert caught.value.exit_code == ExitCode.USAGE
    assert caught.value.action


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    place = cell(tmp_path, Lab(1))
    (tmp_path / "text").write_text("no capture\n")
    result = run(place / "wire.pcap", "--trace", tmp_path / "text")
    assert isinstance(result.exception, UsageError)
    assert "neither pcap nor pcapng" in result.exception.cause


def test_files_in_each_others_place_are_refused(tmp_path: Path) -> None:
    """A capture as its own trace has no record: each frame would be explained by that."""
    place = cell(tmp_path, schedule(1, messages=20, faults=0))
    wire, trace = place / "wire.pcap", place / "n1.pcapng"
    other = tmp_path / "other.pcap"
    other.write_bytes(wire.read_bytes())
    dumped = ROOT / "captures/testbed-rxedump-write-lat-64.pcapng"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    many = [tmp_path / f"n{number}.pcapng" for number in range(1025)]
    for first, traces, says in (
        (wire, many, "1025 traces are too many"),
        (wire, [tmp_path], "is a folder"),
        (tmp_path, [trace], "is a folder"),
        (fifo, [trace], "fifo is not a file"),
        (wire, [wire], "is named twice"),
        (wire, [trace, trace], "is named twice"),
        (wire, [trace, other], "is no trace of rxedump"),
        (dumped, [trace], "is a trace of rxedump"),
    ):
        words = [word for each in traces for word in ("--trace", each)]
        for made in (
            run(first, *words),
            run_export(first, *words, "--perfetto", tmp_path / "made.json"),
            run_annotate(first, *words, "-o", tmp_path / "made.pcapng"),
        ):
            assert isinstance(made.exception, UsageError), made.output
            assert says in made.exception.what
            assert made.exception.action
    assert not list(tmp_path.glob("*made*"))


def test_parquet(tmp_path: Path) -> None:
    cell(tmp_path, schedule(1, messages=20, faults=0))
    assert run(tmp_path, "--parquet", tmp_path / "out").exit_code == ExitCode.OK
    folder = tmp_path / "out" / "perftest-write_lat.rxe-v2.r01" / "64"
    assert len(pl.read_parquet(folder / "packets.parquet")) == 40
    assert len(pl.read_parquet(folder / "messages.parquet")) == 20


def test_every_json_key_and_cause_is_documented(tmp_path: Path) -> None:
    text = (ROOT / "docs/formats/join.md").read_text("utf-8")

    cell(tmp_path, schedule(1, messages=200, faults=0))
    (one,) = json.loads(run("--json", tmp_path).stdout)["places"]
    assert one["median_message"]["of"] == 200
    varied = one["variations"]
    assert [(each["payload_bytes"], each["by"]) for each in varied] == [
        (size, "driver") for size in (4, 64, 1024)
    ]
    for each in varied:
        assert sum(part["share"] for part in each["parts"]) == pytest.approx(1)
    assert {"tx", "rx", "answer_tx", "answer_rx"} == set(one["median_message"]["stages_ns"])
    for part in ("nodes", "median_message"):
        one[part] = {}
    one["records"]["lost"] = {}
    missing = {key for key in keys(one) if f"`{key}`" not in text}
    assert not missing
    for cause in {*join_tables.SENT, *join_tables.RECEIVED}:
        assert f"`{cause}`" in text, cause
