# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze --html`: the page says what the analysis says, safely, and stays small."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import html_tree
from corpus import CAPTURES, SAMPLES, files, frames
from html_tree import Element
from requirements import need_program
from rocelab import units
from rocelab.capture import Options, analyze, parse_filter, picture
from rocelab.cli import analyze as command
from rocelab.errors import UsageError
from rocelab.report import capture_page
from rocelab.report.capture_page import wording

pytestmark = pytest.mark.slow

_EVIL = "<script>alert(1)<img src=x onerror=alert(2)>\"'&{{7*7}}"
_MAX = 2_000_000


def drawn(path: Path, only: str = "") -> tuple[dict[str, object], picture.Picture]:
    options = Options(select=parse_filter(only))
    analysis = analyze([str(path)], options)
    return analysis.result, picture.draw([str(path)], options, analysis)


def page(path: Path, into: Path, only: str = "") -> Element:
    options = Options(select=parse_filter(only))
    analysis = analyze([str(path)], options)
    drawing = picture.draw([str(path)], options, analysis)
    capture_page.write(analysis, drawing, into / "page.html")
    return html_tree.parse((into / "page.html").read_text())


def many(path: Path, packets: int, connections: int) -> Path:
    """Connections in turns, each with PSNs that wrap; every tenth message is sent again."""
    rows = []
    for number in range(packets):
        pair, at = number % connections, number // connections
        psn = (0xFFFFF0 + at - (at % 10 == 9)) % (1 << 24)
        net = frames.Net(a=f"10.0.{pair >> 8}.{pair & 255}", b="10.9.0.1")
        wire = frames.transport("RC_SEND_ONLY", 100 + pair, psn, b"", b"payload!")
        rows.append((10**18 + number * 1000, frames.frame(net, "a", wire)))
    path.write_bytes(files.pcap(rows))
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_sums_over_time_are_those_of_the_analysis(name: str) -> None:
    analysis = analyze([str(CAPTURES / name)])
    result = analysis.result
    if result["input"]["first_ns"] is None:
        pytest.skip("no packets")
    sums = picture.draw([str(CAPTURES / name)], Options(), analysis).over_time.sums
    # of two copies of a packet, one is left out
    copies = 2 if any(row["kind"] == "mirrored" for row in result["conditions"]) else 1
    assert copies * sum(sums["packets"]) == result["roce"]["packets"]
    assert copies * sum(sums["wire_bytes"]) == result["overhead"]["wire_bytes"]
    assert sum(sums["ce"]) == result["congestion"]["ecn"]["ce"]
    assert sum(sums["cnp"]) == result["opcodes"].get("CNP", 0)
    ways = [way for row in result["connections"] for way in row["directions"]]
    goodput = sum(way["goodput_bytes"] for way in ways)
    assert sum(sums["goodput_bytes"]) == goodput


def test_the_page_loads_and_runs_nothing(tmp_path: Path) -> None:
    tree = page(CAPTURES / "fault-drop-before.pcap", tmp_path)
    assert not tree.all("script") + tree.all("link") + tree.all("iframe") + tree.all("img")
    [policy] = tree.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "default-src 'none'" in policy.attributes["content"]
    text = (tmp_path / "page.html").read_text()
    outside = {word.split('"')[0] for word in text.split('"') if word.startswith("http")}
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    for number, name in enumerate((_EVIL, "a\x1b[31mb\u202ec.pcap")):
        evil = tmp_path / name
        shutil.copy(CAPTURES / "icrc-corrupted.pcap", evil)
        (tmp_path / str(number)).mkdir()
        tree = page(evil, tmp_path / str(number))
        assert not tree.all("script") + tree.all("img")
        text = (tmp_path / str(number) / "page.html").read_text()
        assert not {"\x1b", "\u202e"} & set(text)
        assert "{{7*7}}" in tree.text or number == 1


def test_findings_paste_into_wireshark(tmp_path: Path) -> None:
    """The filter shows those frames, and no others."""
    need_program("tshark")
    path = CAPTURES / "fault-rnr.pcap"
    result, _ = drawn(path)
    tree = page(path, tmp_path)
    codes = [code.text for code in tree.all("code")]
    wanted = sorted({row["packet"] for row in result["findings"] if row["packet"]})  # type: ignore[attr-defined]
    # the verdict's frames come first
    assert codes[1:] == [wording.frame_filter(wanted)]
    shown = subprocess.run(
        ["tshark", "-r", str(path), "-Y", codes[1], "-T", "fields", "-e", "frame.number"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [int(line) for line in shown.stdout.split()] == wanted


def test_a_filter_joins_neighbours_and_is_bounded() -> None:
    assert wording.frame_filter([9, 3, 1, 2, 9, 11, 12]) == "frame.number in {1..3, 9, 11..12}"
    assert wording.frame_filter([]) == units.ABSENT
    assert len(wording.frame_filter(range(0, 10**6, 2))) < 10_000


def test_findings_are_marked_at_their_psn(tmp_path: Path) -> None:
    result, drawing = drawn(CAPTURES / "fault-drop-before.pcap")
    (space,) = drawing.psns[0].spaces
    assert space.packets == 35
    assert space.points.height == 35
    (mark,) = space.marks
    assert mark.label == "warning loss: frame 29"
    assert mark.psn % (1 << 24) == 5032210
    # what was lost, and all behind it, is sent again
    again = space.points.filter(space.points["kind"] == "sent again or late")
    ways = result["connections"][0]["directions"]  # type: ignore[index]
    assert again.height == ways[0]["retransmitted"] == 4
    tips = [tip.text for tip in page(CAPTURES / "fault-drop-before.pcap", tmp_path).all("title")]
    assert "warning loss: frame 29" in tips


def test_psns_go_on_where_they_wrap(tmp_path: Path) -> None:
    path = many(tmp_path / "wrap.pcap", 60, 1)
    _, drawing = drawn(path)
    (space,) = drawing.psns[0].spaces
    assert space.points["psn"].max() - space.points["psn"].min() == 58  # type: ignore[operator]
    assert (space.points["kind"] == "sent again or late").sum() == 6


def test_large_captures_make_small_pages(tmp_path: Path) -> None:
    path = many(tmp_path / "many.pcap", 60_000, 600)
    page(path, tmp_path)
    assert (tmp_path / "page.html").stat().st_size < _MAX
    one = many(tmp_path / "one.pcap", 60_000, 1)
    _, drawing = drawn(one)
    (space,) = drawing.psns[0].spaces
    assert space.packets == 60_000
    assert space.points.height < 6000
    # thinned, but its ends and its kinds are all there
    assert space.points["time_ns"].min() == 10**18
    assert space.points["psn"].max() - space.points["psn"].min() == 59_998  # type: ignore[operator]
    assert space.points["kind"].n_unique() == 2
    page(one, tmp_path)
    assert (tmp_path / "page.html").stat().st_size < _MAX


def test_the_table_of_connections_leads_to_their_diagrams(tmp_path: Path) -> None:
    """One is open, eight are there, and the page stays small."""
    text = page(many(tmp_path / "ten.pcap", 120_000, 10), tmp_path)
    assert (tmp_path / "page.html").stat().st_size < _MAX
    links = {link.attributes["href"] for link in text.all("a")}
    diagrams = {link for link in links if link.startswith("#sequence-")}
    assert len(diagrams) == 8
    assert diagrams <= {f"#{card.attributes.get('id')}" for card in text.all("div")}
    folded = text.all("details", class_="folded")
    assert sum("requests of" in one.text for one in folded) == 7


def test_a_filter_chooses_the_connection(tmp_path: Path) -> None:
    path = many(tmp_path / "three.pcap", 90, 3)
    result, drawing = drawn(path, "conn=2")
    assert drawing.psns[0].connection["id"] == 2
    assert sum(drawing.over_time.sums["packets"]) == 30
    assert sum(drawing.over_time.sums["goodput_bytes"]) == sum(
        way["goodput_bytes"]
        for row in result["connections"]  # type: ignore[attr-defined]
        for way in row["directions"]
    )


def test_connections_have_vlan_priority_and_mac_addresses(tmp_path: Path) -> None:
    frame = bytearray(frames.frame(
        frames.Net(), "a", frames.transport("RC_SEND_ONLY", 7, 1, b"", b"abcd")
    ))  # fmt: skip
    frame[12:12] = struct.pack(">HH", 0x8100, 5 << 13 | 42)
    path = tmp_path / "tagged.pcap"
    path.write_bytes(files.pcap([(10**18, bytes(frame))]))
    text = page(path, tmp_path).text
    assert "VLAN 42, PCP 5" in text
    source = ":".join(f"{byte:02x}" for byte in frame[6:12])
    assert f"({source})" in text


def test_pauses_name_who_and_how_long(tmp_path: Path) -> None:
    def pfc(time_us: int, quanta: int) -> tuple[int, bytes]:
        head = bytes.fromhex("0180c2000001 0200000000aa 8808 0101 0008".replace(" ", ""))
        times = struct.pack(">8H", *(quanta if at == 3 else 0 for at in range(8)))
        return 10**18 + time_us * 1000, (head + times).ljust(60, b"\0")

    data = frames.frame(frames.Net(), "a", frames.transport("RC_SEND_ONLY", 7, 1, b"", b"abcd"))
    path = tmp_path / "paused.pcap"
    path.write_bytes(
        files.pcap([(10**18, data), pfc(10, 0xFFFF), pfc(20, 0xFFFF), pfc(110, 0), pfc(200, 1000)])
    )
    result, _ = drawn(path)
    (pause,) = result["congestion"]["pauses"]  # type: ignore[index]
    counted = {name: pause[name] for name in ("source", "class", "xoff", "xon", "packet")}
    assert counted == {"source": "02:00:00:00:00:aa", "class": 3, "xoff": 3, "xon": 1, "packet": 2}
    assert pause["quanta"] == 2 * 0xFFFF + 1000
    assert pause["paused_at_most_ns"] == 100_000
    text = page(path, tmp_path).text
    assert "02:00:00:00:00:aa" in text
    assert "100 µs" in text.replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_what_has_no_page_is_refused(tmp_path: Path) -> None:
    one, into = str(CAPTURES / "rc-v1.pcap"), str(tmp_path / "page.html")
    fifo, empty = tmp_path / "fifo", tmp_path / "empty.pcap"
    os.mkfifo(fifo)
    empty.write_bytes(files.pcap([]))
    for words in (
        [one, one, "--html", into], ["-", "--html", into], [one, "--html", ".."],
        [one, "--html", f"{one}/page.html"], ["--live", "lo", "--html", into],
        [str(tmp_path / "none.pcap"), "--html", into], [one, "--html", str(fifo)],
        [str(empty), "--html", into],
    ):  # fmt: skip
        error = CliRunner().invoke(command.analyze, words).exception
        assert isinstance(error, UsageError), (words, error)
    assert not Path(into).exists()
    assert fifo.is_fifo()


def test_the_command_writes_it_and_prints_the_results(tmp_path: Path) -> None:
    into = tmp_path / "new" / "page.html"
    words = ["--merge", "--html", str(into)]
    names = [str(CAPTURES / name) for name in ("rc-v1.pcap", "rc-v2-ipv4.pcap")]
    result = CliRunner().invoke(command.analyze, [*words, *names])
    assert result.exit_code == 0, result.exception
    assert "connections" in result.stdout
    assert "rc-v2-ipv4.pcap" in html_tree.parse(into.read_text()).text
