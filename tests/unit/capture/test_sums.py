# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums that are given twice agree: in JSON, in tables, on the page, in text and in a join."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from corpus import CAPTURES, SAMPLES
from rocelab import capture, correlate
from rocelab.capture import analysis as reader
from rocelab.capture import connection_rows, picture
from rocelab.report.capture_page.document import compose
from rocelab.terminal import capture_tables

NETS = ("v1", "v2_ipv4", "v2_ipv6", "infiniband")
COPIES = {"mirrored", "several_interfaces"}
COUNTS = (
    *("packets", "wire_bytes", "payload_bytes", "goodput_bytes", "messages", "retransmitted"),
    *("duplicates", "gaps", "missing", "missed_by_capture", "out_of_order", "acks", "rnr"),
    *("ce", "cnp"),
)
EXTRA = 24
"""Bytes that Ethernet adds to a frame."""


@dataclass(frozen=True)
class Given:
    """Everything that the product says about a capture."""

    result: dict[str, Any]
    tables: dict[str, pl.DataFrame]

    @property
    def ways(self) -> list[dict[str, Any]]:
        """All directions."""
        return [way for row in self.result["connections"] for way in row["directions"]]

    def sum(self, key: str) -> int:
        """Of all directions."""
        return sum(way[key] for way in self.ways)

    @property
    def followed(self) -> pl.DataFrame:
        """Packets of connections."""
        return self.tables["packets"].drop_nulls("connection")

    @property
    def copies_are_left_out(self) -> bool:
        """Whether tables and connections have fewer packets than the capture, on purpose."""
        return any(row["kind"] in COPIES for row in self.result["conditions"])


@pytest.fixture(scope="module", params=SAMPLES)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Given:
    folder = tmp_path_factory.mktemp("tables")
    result = capture.analyze([str(CAPTURES / request.param)], parquet=folder).result
    tables = {path.stem: pl.read_parquet(path) for path in folder.iterdir()}
    return Given(result, tables)


def test_packets_are_counted_once(given: Given) -> None:
    result, packets = given.result, given.result["roce"]["packets"]
    congestion, icrc = result["congestion"], result["icrc"]
    sums = {
        "nets": sum(result["roce"][net] for net in NETS),
        "opcodes": sum(result["opcodes"].values()),
        "icrc": icrc["ok"] + icrc["bad"] + icrc["unchecked"],
        "ecn": sum(congestion["ecn"].values()),
        "dscp": sum(congestion["dscp"].values()),
        "series": sum(result["series"]["packets"]),
    }
    if not given.copies_are_left_out:
        sums["table"] = given.tables["packets"].height
    assert sums == dict.fromkeys(sums, packets)
    assert sum(icrc["diagnoses"].values()) == icrc["bad"]
    read = result["input"]
    frames = packets + read["fragments"] - read.get("reassembled", 0)
    flow_control = congestion["pfc"] + congestion["pause"]
    assert frames + read["cut_headers"] + flow_control + read["other"] >= read["packets"]


def test_bytes_are_counted_once(given: Given) -> None:
    overhead, packets = given.result["overhead"], given.tables["packets"]
    headers = sum(overhead["by_header"].values())
    assert overhead["payload_bytes"] + headers == overhead["wire_bytes"]
    assert sum(given.result["series"]["payload_bytes"]) == overhead["payload_bytes"]
    if not given.copies_are_left_out:
        assert packets["wire_bytes"].sum() == overhead["wire_bytes"]
        assert packets["payload_bytes"].sum() == overhead["payload_bytes"]


def test_connections_have_the_packets_that_name_them(given: Given) -> None:
    followed = given.followed
    assert followed.height == given.sum("packets")
    assert followed["wire_bytes"].sum() == given.sum("wire_bytes")
    assert followed["payload_bytes"].sum() == given.sum("payload_bytes")
    assert (followed["ecn"] == 3).sum() == given.sum("ce")
    assert (followed["opcode_name"] == "CNP").sum() == given.sum("cnp")
    rows = {row["id"]: sum(way["packets"] for way in row["directions"])
            for row in given.result["connections"]}  # fmt: skip
    # also those that came before their connection was known
    assert Counter(followed["connection"]) == Counter(rows)
    named = {row["connection"] for row in given.result["findings"]} - {None}
    assert named <= rows.keys()
    for way in given.ways:
        series = way["series"]
        assert sum(series["packets"]) == way["packets"]
        assert sum(series["payload_bytes"]) == way["payload_bytes"]
        assert sum(series["retransmitted"]) == way["retransmitted"]


def test_messages_are_counted_once(given: Given) -> None:
    messages, sizes = given.tables["messages"], given.result["overhead"]["by_message_size"]
    assert messages.height == given.sum("messages")
    by_way = Counter(zip(messages["connection"], messages["from"], strict=True))
    for row in given.result["connections"]:
        for way in row["directions"]:
            assert by_way[row["id"], way["from"]] == way["messages"]
    assert messages["payload_bytes"].sum() == given.sum("goodput_bytes")
    # those that came to nothing are no goodput, and took their place on the wire
    failed = sum(row["messages"] for row in sizes) - messages.height
    assert failed == FAILED.get(given.result["input"]["files"][0].rpartition("/")[2], 0)
    if not failed:
        for key in ("packets", "payload_bytes", "wire_bytes"):
            assert sum(row[key] for row in sizes) == messages[key].sum()


FAILED = {"retry-exceeded.pcap": 1}


def test_retransmissions_have_causes(given: Given) -> None:
    """Those of requests; a READ's response is sent again because the READ is."""
    responses = given.followed["opcode_name"].str.contains("READ_RESPONSE").fill_null(value=False)
    again = set(given.followed.filter(responses)["connection"].to_list())
    for row in given.result["connections"]:
        for way in row["directions"]:
            causes = sum(way["retransmissions"].values())
            sent = way["retransmitted"] + way["retransmitted_requests"]
            assert causes == sent or (row["id"] in again and causes < sent)


def test_findings_are_counted_once(given: Given) -> None:
    result, total = given.result, given.result["findings_total"]
    assert sum(row["count"] for row in result["finding_counts"]) == total
    assert sum(row["count"] for row in result["findings"]) == total
    assert given.tables["findings"]["count"].sum() == total
    ambiguous = sum(row["count"] for row in result["findings"] if row["ambiguous"])
    assert ambiguous == result["findings_ambiguous"]


def test_the_tables_of_connections(given: Given) -> None:
    """Parquet and CSV have the numbers of JSON."""
    table, rows = given.tables["connections"], list(connection_rows.rows(given.result))
    assert table.height == len(rows) == len(given.ways)
    for key in COUNTS:
        assert (
            table[key].to_list() == [row[key] for row in rows] == [way[key] for way in given.ways]
        )


def test_preambles_are_of_frames(given: Given) -> None:
    """`--l1`: fragments of a packet are frames, each with its own."""
    name = given.result["input"]["files"][0]
    with_l1 = capture.analyze([name], capture.Options(l1=True)).result["overhead"]
    plain, read = given.result["overhead"], given.result["input"]
    extra = with_l1["by_header"]["preamble_fcs_gap"]
    assert with_l1["payload_bytes"] + sum(with_l1["by_header"].values()) == with_l1["wire_bytes"]
    assert with_l1["wire_bytes"] - plain["wire_bytes"] == extra
    on_ethernet = given.result["roce"]["packets"] - given.result["roce"]["infiniband"]
    if not read["fragments"]:
        assert extra == EXTRA * on_ethernet
    sizes = zip(with_l1["by_message_size"], plain["by_message_size"], strict=True)
    for one, before in sizes:
        assert before["frames"] == before["packets"] or read["fragments"]
        frames = 0 if one["net"] == "infiniband" else one["frames"]
        assert one["wire_bytes"] - before["wire_bytes"] == EXTRA * frames


def test_the_page_has_the_same(given: Given) -> None:
    result = given.result
    analysis = capture.analyze(result["input"]["files"])
    drawn = picture.draw(result["input"]["files"], capture.Options(), analysis)
    sums = {name: sum(values) for name, values in drawn.over_time.sums.items()}
    packets = given.tables["packets"]
    assert sums == {
        "packets": packets.height,
        "wire_bytes": packets["wire_bytes"].sum(),
        "goodput_bytes": given.sum("goodput_bytes"),
        "ce": (packets["ecn"] == 3).sum(),
        "cnp": (packets["opcode_name"] == "CNP").sum(),
    }
    overview = next(one for one in compose(result, drawn).sections if one.title == "Overview")
    told = {label: " ".join(texts).replace(",", "") for label, texts in overview.points}
    assert told["connections"] == str(len(result["connections"]))
    assert f"of {result['overhead']['wire_bytes']} bytes" in told["payload"]


def test_the_text_has_the_same(given: Given) -> None:
    result = given.result
    console = Console(file=io.StringIO(), width=200)
    capture_tables.show(result, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert re.search(rf"^RoCE +{result['roce']['packets']} packets", text, re.MULTILINE)
    if result["roce"]["packets"]:
        counts = Counter[str]()
        for row in result["finding_counts"]:
            counts[row["severity"]] += row["count"]
        for severity in ("error", "warning", "note"):
            assert re.search(rf"\b{counts[severity]} {severity}s?,", text)
        listed = len(result["connections"])
        assert re.search(rf"^connections +{listed}\b", text, re.MULTILINE)


def test_a_join_has_the_frames_of_the_analysis() -> None:
    wire = CAPTURES / "testbed-write-lat-64.pcap"
    trace = CAPTURES / "testbed-rxedump-write-lat-64.pcapng"
    joined = correlate.join(wire, [trace])
    packets = capture.analyze([str(wire)]).result["roce"]["packets"]
    assert joined.sums["wire"]["frames"] == packets
    assert sum(joined.sums["wire"]["sent"].values()) == packets
    assert joined.packets["wire_packet"].drop_nulls().len() == packets


@pytest.mark.parametrize("name", ["case-mid-traffic", "case-sampled", "cnp-format"])
def test_a_filter_keeps_rows_from_before_the_first_answer(tmp_path: Path, name: str) -> None:
    sample = str(CAPTURES / f"{name}.pcap")
    whole = capture.read(sample)
    assert whole.renumbered, "the first packets were of a connection not known yet"
    for number in sorted(set(whole.renumbered.values())):
        options = capture.Options(select=capture.parse_filter(f"conn={number}"))
        tables = tmp_path / str(number)
        capture.analyze([sample], options, parquet=tables)
        chosen = capture.read(sample, options=options)
        for table in ("packets", "messages"):
            rows = pl.DataFrame(getattr(whole, table)).filter(pl.col("connection") == number)
            assert pl.DataFrame(getattr(chosen, table)).equals(rows), table
            assert pl.read_parquet(tables / f"{table}.parquet").equals(rows), table


def test_a_filter_chooses_in_all_tables(tmp_path: Path) -> None:
    sample = str(CAPTURES / "case-tunnels.pcap")
    options = capture.Options(select=capture.parse_filter("conn=2"))
    result = capture.analyze([sample], options, parquet=tmp_path).result
    assert [row["id"] for row in result["connections"]] == [2]
    written = {path.stem: pl.read_parquet(path) for path in tmp_path.iterdir()}
    kept = capture.read(sample, options=options)
    for name in ("connections", "findings", "messages", "packets"):
        for table in (written[name], pl.DataFrame(getattr(kept, name))):
            assert set(table["connection"]) <= {2}, name
    assert 0 < written["messages"].height <= written["packets"].height


def test_what_is_wrong_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading for a filter's rows knows from the first one that packets were mirrored."""
    plans = []

    def count(paths: list[str], options: capture.Options, plan: reader.Plan, **words: Any) -> Any:
        plans.append(plan)
        return open_core(paths, options, plan, **words)

    open_core = reader.open_core
    monkeypatch.setattr(reader, "open_core", count)
    options = capture.Options(select=capture.parse_filter("conn=0"))
    capture.read(CAPTURES / "case-mirrored.pcap", options=options)
    assert [bool(plan.looks) for plan in plans] == [False, True, True]
