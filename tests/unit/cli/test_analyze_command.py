# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze` for people and for scripts."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from corpus import CAPTURES, files, frames
from json_keys import keys
from polling import wait_until
from rocelab import capture
from rocelab.capture import connection_rows
from rocelab.cli.analyze import analyze
from rocelab.errors import ExitCode, UsageError

Net = frames.Net


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(analyze, [str(word) for word in words])


def as_json(*words: str | Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run("--json", *words).stdout)
    return result


def test_json_has_all_documented_keys() -> None:
    document = as_json(CAPTURES / "fault-corrupt.pcap")
    assert document["schema"] == "rocelab.analysis/3"
    wanted = {
        "input": "files packets bytes truncated first_ns last_ns",
        "roce": "packets v1 v2_ipv4 v2_ipv6 vlan",
        "icrc": "ok bad unchecked bad_packets",
        "overhead": "wire_bytes payload_bytes by_header",
    }
    for key, names in wanted.items():
        assert set(names.split()) <= set(document[key])
    (bad,) = document["icrc"]["bad_packets"]
    assert {"file", "packet", "expected", "found", "diagnosis"} <= set(bad)
    connection = document["connections"][0]
    assert {"id", "service", "paired_by", "certainty", "a", "b", "directions"} <= set(connection)
    assert set(connection["a"]) == {"address", "qpn"}
    names = (
        "from packets payload_bytes goodput_bytes messages retransmitted duplicates gaps "
        "out_of_order acks naks rnr latency_ns"
    )
    for direction in connection["directions"]:
        assert set(names.split()) <= set(direction)
        assert {"count", "p50", "p99", "max"} <= set(direction["latency_ns"])
    for finding in document["findings"]:
        assert {"rule", "severity", "file", "packet", "connection", "detail"} <= set(finding)


def test_every_json_key_is_documented() -> None:
    text = (CAPTURES.parent / "docs/formats/analysis.md").read_text()

    document = as_json(CAPTURES / "fault-corrupt.pcap")
    for part in ("opcodes", "congestion"):
        document[part] = {}
    document["overhead"]["by_header"] = {}
    document["icrc"]["diagnoses"] = {}
    missing = {key for key in keys(document) if f"`{key}`" not in text}
    assert not missing


def test_every_rule_is_described() -> None:
    page = (CAPTURES.parent / "docs/checks/README.md").read_text()
    described = set(re.findall(r"^### ([\w-]+)$", page, re.MULTILINE))
    source = (CAPTURES.parent / "tools/rocelab/crates/roce/src/finding.rs").read_text()
    table = source.split("rules! {")[1].split("}")[0]
    assert {line.split('"')[1] for line in table.splitlines() if '"' in line} == described


def test_exit_codes() -> None:
    assert run(CAPTURES / "rc-v1.pcap").exit_code == ExitCode.OK
    assert run(CAPTURES / "timeout.pcap").exit_code == ExitCode.OK
    assert run(CAPTURES / "icrc-dscp.pcap").exit_code == ExitCode.FINDINGS
    with pytest.raises(UsageError) as caught:
        capture.analyze(["/dev/null"])
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_cut_capture_is_told_by_the_exit_code() -> None:
    result = run(CAPTURES / "cut.pcap")
    assert result.exit_code == ExitCode.FINDINGS
    assert "ends within a record" in result.stdout


def test_several_captures_are_analysed_one_by_one(tmp_path: Path) -> None:
    names = [CAPTURES / "rc-v1.pcap", CAPTURES / "rc-v2-ipv4.pcap"]
    result = run("--json", *names)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["input"]["files"] for row in rows] == [[str(name)] for name in names]
    (merged,) = [json.loads(line) for line in run("--json", "--merge", *names).stdout.splitlines()]
    assert merged["input"]["packets"] == sum(row["input"]["packets"] for row in rows)
    assert isinstance(run("--parquet", tmp_path, *names).exception, UsageError)
    with pytest.raises(UsageError, match="65536 captures are too many"):
        capture.analyze([str(names[0])] * 65536)


def test_csv_has_the_connections_of_all_captures() -> None:
    names = [CAPTURES / "fault-drop-before.pcap", CAPTURES / "case-vlan-overlap.pcap"]
    result = run("--csv", *names)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert list(rows[0]) == list(connection_rows.COLUMNS)
    assert {row["file"] for row in rows} == {str(name) for name in names}
    assert {row["vlans"] for row in rows} == {"", "10", "20"}
    for name in names:
        own = [row for row in rows if row["file"] == str(name)]
        # the other output of the same facts, which the core writes by itself
        table = pl.DataFrame(capture.read(name).connections)
        for column in set(table.columns) & set(connection_rows.COLUMNS):
            texts = ["" if value is None else str(value) for value in table[column]]
            assert [row[column] for row in own] == texts, column
    assert isinstance(run("--csv", "--json", *names).exception, UsageError)


def test_csv_columns_are_documented() -> None:
    text = (CAPTURES.parent / "docs/formats/analysis.md").read_text()
    assert not {name for name in connection_rows.COLUMNS if f"`{name}`" not in text}


def test_csv_is_safe_to_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("=1+1.pcap", "a\x1b]0;x.pcap"):
        (tmp_path / name).write_bytes((CAPTURES / "rc-v1.pcap").read_bytes())
    result = run("--csv", "=1+1.pcap", "a\x1b]0;x.pcap")
    names = {row["file"] for row in csv.DictReader(io.StringIO(result.stdout))}
    assert names == {"./=1+1.pcap", "a\\x1b]0;x.pcap"}


def test_one_unusable_file_does_not_hide_the_others(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(b"no capture")
    result = run(nothing, CAPTURES / "rc-v1.pcap")
    assert result.exit_code == ExitCode.USAGE
    assert "rc-v1.pcap" in result.stdout


def test_the_head_says_what_holds_for_the_capture() -> None:
    text = run(CAPTURES / "case-mirrored.pcap").stdout
    assert "nearly every packet appears twice" in text
    assert text.index("nearly every") < text.index("connections")


def test_findings_of_a_connection_share_a_line() -> None:
    text = run(CAPTURES / "fault-rnr.pcap").stdout
    assert "by rule: " in text


def test_sigint_ends_a_stream_and_prints_the_results(tmp_path: Path) -> None:
    """The writer keeps the pipe open: only the signal ends the capture."""
    body = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
    argv = [sys.executable, "-m", "rocelab", "analyze", "--json", "-"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(body)
        process.stdin.flush()
        wait_until("it reads", lambda: _reads(process.pid))
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        result = json.loads(process.stdout.read())
        process.stdin.close()
        assert process.wait() == ExitCode.OK
    assert result["input"]["packets"] == 11


def _reads(pid: int) -> bool:
    """Whether the process has taken all bytes and waits in a read of standard input."""
    return any(_reads_stdin(thread) for thread in Path(f"/proc/{pid}/task").iterdir())


def _reads_stdin(thread: Path) -> bool:
    try:
        words = (thread / "syscall").read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # a thread that ended is not the reader
        return False
    return words[:2] == ["0", "0x0"]


def test_a_bad_end_of_gzip_loses_nothing_before_it(tmp_path: Path) -> None:
    path = tmp_path / "bad.pcap.gz"
    body = bytearray(gzip.compress((CAPTURES / "rc-v2-ipv4.pcap").read_bytes()))
    body[-8:-4] = bytes(4)
    path.write_bytes(body)
    result = run("--json", path)
    document = json.loads(result.stdout)
    assert document["input"]["packets"] == 11
    assert document["input"]["errors"]
    assert result.exit_code == ExitCode.FINDINGS


def test_lz4_is_read(tmp_path: Path) -> None:
    """A frame with one stored block (the format's specification, sections 3 and 4)."""
    body = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
    descriptor = bytes([0x60, 0x70])
    head = struct.pack("<I", 0x184D2204) + descriptor + bytes([0x73])
    path = tmp_path / "stored.pcap.lz4"
    path.write_bytes(head + struct.pack("<I", 0x80000000 | len(body)) + body + bytes(4))
    assert as_json(path)["input"]["packets"] == 11


def test_profile_gbn_turns_notes_into_errors() -> None:
    path = CAPTURES / "selective-repeat.pcap"
    assert run(path).exit_code == ExitCode.OK
    assert run(path, "--profile", "gbn").exit_code == ExitCode.FINDINGS


def test_findings_beyond_the_limit_are_counted() -> None:
    document = as_json(CAPTURES / "malformed-sequence.pcap", "--max-findings", "1")
    assert len(document["findings"]) == 1
    assert document["findings_total"] == 3
    assert run(CAPTURES / "malformed-sequence.pcap", "--max-findings", "0").exit_code == 1


def test_no_icrc() -> None:
    document = as_json(CAPTURES / "icrc-dscp.pcap", "--no-icrc")
    assert document["icrc"]["unchecked"] == 1
    assert document["findings"] == []


def test_packets_are_numbered_as_in_wireshark() -> None:
    document = as_json(CAPTURES / "rnr-backoff.pcap")
    assert {row["rule"]: row["packet"] for row in document["findings"]} == {
        "rnr": 2, "rnr-backoff": 3,
    }  # fmt: skip


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = tmp_path / "a\x1b[31mred\x07\u202e.pcap"
    evil.write_bytes((CAPTURES / "cut.pcap").read_bytes())
    text = run(evil).stdout
    assert "red" in text.replace("\n", "")
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_rich_markup_in_file_names_is_printed_literally(tmp_path: Path) -> None:
    odd = tmp_path / "[bold]x.pcap"
    odd.write_bytes((CAPTURES / "cut.pcap").read_bytes())
    result = run(odd)
    assert result.exit_code == ExitCode.FINDINGS, result.exception
    assert "[bold]x.pcap" in "".join(line.strip() for line in result.stdout.splitlines())


def test_summary_fits_a_screen() -> None:
    text = run(CAPTURES / "fault-drop-before.pcap").stdout
    head = text.split("connections\n")[0]
    assert len(head.splitlines()) <= 24
    assert "findings" in head


def test_parquet_equals_the_tables_of_read(tmp_path: Path) -> None:
    path = CAPTURES / "rc-v2-ipv6.pcap"
    assert run(path, "--parquet", tmp_path / "out").exit_code == 0
    tables = capture.read(path)
    for name in ("packets", "messages", "connections", "findings"):
        table = pl.DataFrame(getattr(tables, name))
        assert pl.read_parquet(tmp_path / "out" / f"{name}.parquet").equals(table), name
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == [
        "connections.parquet", "findings.parquet", "messages.parquet", "packets.parquet",
    ]  # fmt: skip


def test_tables_reach_pyarrow_without_a_copy() -> None:
    import pyarrow as pa

    tables = capture.read(CAPTURES / "rc-v1.pcap")
    table = pa.table(tables.packets)
    assert table.num_rows == 11 == len(tables.packets)
    assert table["opcode_name"][0].as_py() == "RC_SEND_ONLY"
    again = pa.table(tables.packets)
    column = table["psn"].chunk(0).buffers()[1]
    assert column.address == again["psn"].chunk(0).buffers()[1].address


def two_connections(path: Path) -> Path:
    packets = []
    for index, (net, qpn) in enumerate(((Net(), 7), (Net(a="10.0.0.3"), 9))):
        wire = frames.transport("RC_SEND_ONLY", qpn, 1, b"", b"abcd")
        packets.append((index * 10**9, frames.frame(net, "a", wire)))
    path.write_bytes(files.pcap(packets))
    return path


@pytest.mark.parametrize(
    ("terms", "qpns"),
    [
        ("", {7, 9}), ("qpn=7", {7}), ("conn=1", {9}), ("addr=10.0.0.3", {9}),
        ("time=0.5..", {9}), ("time=..0.5", {7}), ("addr=10.0.0.2, qpn=9", {9}),
        ("addr=10.0.0.3/32", {9}), ("addr=10.0.0.0/30", {7, 9}), ("addr=10.0.0.3/31", {7, 9}),
        ("addr=0.0.0.0/0", {7, 9}), ("addr=fe80::/10", set()), ("addr=::/0", {7, 9}),
        ("addr=fe80::/10,addr=10.0.0.3", {9}),
    ],
)  # fmt: skip
def test_filter(terms: str, qpns: set[int], tmp_path: Path) -> None:
    document = as_json(two_connections(tmp_path / "two.pcap"), "--filter", terms)
    assert {row["b"]["qpn"] for row in document["connections"]} == qpns


def two_faults(path: Path) -> Path:
    """Connection 0 breaks no rule; connection 1 sends a P_Key of zero, which is an error."""
    good = frames.transport("RC_SEND_ONLY", 7, 1, b"", b"abcd", pkey=0xFFFF)
    bad = frames.transport("RC_SEND_ONLY", 9, 1, b"", b"abcd", pkey=0)
    path.write_bytes(files.pcap([
        (0, frames.frame(Net(), "a", good)), (1000, frames.frame(Net(a="10.0.0.3"), "a", bad)),
    ]))  # fmt: skip
    return path


@pytest.mark.parametrize(
    ("terms", "errors"), [("", 1), ("conn=0", 0), ("conn=1", 1), ("qpn=7", 0), ("qpn=9", 1)]
)
def test_filter_restricts_counts_and_exit_code(terms: str, errors: int, tmp_path: Path) -> None:
    path = two_faults(tmp_path / "two.pcap")
    document = as_json(path, "--filter", terms)
    assert document["findings_total"] == len(document["findings"]) == errors
    assert sum(row["count"] for row in document["finding_counts"]) == errors
    assert document["findings_unfiltered"] == (1 if terms else None)
    assert run(path, "--filter", terms).exit_code == (ExitCode.FINDINGS if errors else ExitCode.OK)


def test_filtered_findings_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    path = two_faults(tmp_path / "two.pcap")
    document = as_json(path, "--filter", "qpn=9", "--max-findings", "0")
    assert document["findings"] == []
    assert document["findings_total"] == 1
    assert run(path, "--filter", "qpn=9", "--max-findings", "0").exit_code == ExitCode.FINDINGS


def test_l1_counts_bytes_that_captures_leave_out() -> None:
    path = CAPTURES / "rc-v2-ipv4.pcap"
    without, with_it = (as_json(path, *words)["overhead"] for words in ((), ("--l1",)))
    assert with_it["by_header"].pop("preamble_fcs_gap") == 24 * 11
    assert with_it["by_header"] == without["by_header"]
    assert with_it["wire_bytes"] == without["wire_bytes"] + 24 * 11
    for one, more in zip(without["by_message_size"], with_it["by_message_size"], strict=True):
        assert more["wire_bytes"] == one["wire_bytes"] + 24 * one["packets"]
        assert more["efficiency"] < one["efficiency"]
    # SEND, WRITE of three packets, READ response of two
    assert sum(row["packets"] for row in without["by_message_size"]) == 6


def test_filter_by_opcode_chooses_packets() -> None:
    select = capture.parse_filter("opcode=read_response")
    tables = capture.read(CAPTURES / "rc-v1.pcap", options=capture.Options(select=select))
    names = pl.DataFrame(tables.packets)["opcode_name"].to_list()
    assert names == ["RC_RDMA_READ_RESPONSE_FIRST", "RC_RDMA_READ_RESPONSE_LAST"]


@pytest.mark.parametrize(
    "terms",
    [
        *("x=1", "qpn=abc", "qpn=16777216", "addr=host", "opcode=NO"),
        *("time=5", "time=2..1", "time=x..2", "time=nan..1", "time=1e400..2"),
    ],
)
def test_an_invalid_filter_is_refused_with_its_cause(terms: str) -> None:
    with pytest.raises(UsageError) as caught:
        capture.parse_filter(terms)
    assert caught.value.cause
    # Python's words are no user's
    assert not re.search("float|int|literal|interface", caught.value.cause)
    assert "addr=ADDRESS" in caught.value.action
