# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab annotate` for people and for scripts, and its comments in tshark."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from command_line import in_process as rocelab
from corpus import CAPTURES
from pcapng_blocks import packets
from rocelab.stage_table import RX, TX
from tshark_plugin import Tshark
from two_drivers import schedule

pytestmark = pytest.mark.slow

FIELDS = {
    "node": "node", "dev": "dev", "dir": "dir", "net": "net", "op": "op", "psn": "psn",
    "gap_ns": "gap", "psn_status": "psn.status", "response_to": "response_to",
    "message": "message", "drop": "drop",
    **{f"{stage}_ns": f"stage.{stage}" for stage in dict.fromkeys((*TX, *RX))},
}  # fmt: skip
NUMBERS = {"qpn": "qpn", "dqpn": "dqpn"}


def comments(path: Path) -> dict[int, list[dict[str, list[str]]]]:
    """Each comment's keys and values in order, by frame number."""
    by_packet = {}
    for number, block in enumerate(packets(path.read_bytes()), 1):
        read: list[dict[str, list[str]]] = []
        for _, value in block.options:
            keys: dict[str, list[str]] = {}
            for word in value.decode().split(" ")[1:]:
                key, _, text = word.partition("=")
                keys.setdefault(key, []).append(unquote(text))
            read.append(keys)
        by_packet[number] = read
    return by_packet


def check_round_trip(tshark: Tshark, made: Path) -> int:
    """Check that tshark shows every number and word of the comments; return their count."""
    names = [f"rocelab.{name}" for name in (*FIELDS.values(), *NUMBERS.values())]
    names += ["rocelab.response_time", "rocelab.finding", "rocelab.finding.severity",
              "rocelab.finding.detail", "rocelab.other"]  # fmt: skip
    rows = tshark.fields(made, names, "-E", "aggregator=|")
    checked = 0
    written = comments(made)
    assert rows.keys() == written.keys()
    for number, read in written.items():
        row = rows[number]
        for key, name in FIELDS.items():
            expected = [value for keys in read for value in keys.get(key, [])]
            assert row[f"rocelab.{name}"] == "|".join(expected), (number, key)
            checked += len(expected)
        for key, name in NUMBERS.items():
            shown = row[f"rocelab.{name}"]
            got = [int(text, 0) for text in shown.split("|")] if shown else []
            assert got == [int(value) for keys in read for value in keys.get(key, [])]
        times = [int(value) for keys in read for value in keys.get("response_ns", [])]
        shown = row["rocelab.response_time"]
        assert ([round(float(text) * 1e9) for text in shown.split("|")] if shown else []) == times
        findings = [value for keys in read for value in keys.get("finding", [])]
        heads = [finding.partition(":")[0].split(" ") for finding in findings]
        assert row["rocelab.finding"] == "|".join(head[1] for head in heads)
        assert row["rocelab.finding.severity"] == "|".join(head[0] for head in heads)
        assert row["rocelab.finding.detail"] == "|".join(
            finding.partition(": ")[2] for finding in findings
        )
        assert row["rocelab.other"] == ""
        checked += len(times) + len(findings)
    return checked


def test_tshark_shows_all_driver_numbers(tshark: Tshark, tmp_path: Path) -> None:
    wire, traces = schedule(5).write(tmp_path)
    made = tmp_path / "made.pcapng"
    words = [str(word) for trace in traces for word in ("--trace", trace)]
    answer = rocelab("annotate", str(wire), *words, "-o", str(made), "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert report["schema"] == "rocelab.annotate/1"
    assert report["driver"]["tx"] > 50
    assert check_round_trip(tshark, made) > 1000


@pytest.mark.parametrize(
    ("fault", "statuses"),
    [
        ("drop-before", {"gap", "nak", "retransmission_after_nak"}),
        ("drop-behind", {"nak", "retransmission_after_nak"}),
        ("corrupt", {"corrupt", "nak", "retransmission_after_nak"}),
        ("duplicate", {"duplicate"}),
        ("reorder", {"gap"}),
        ("rnr", {"rnr_nak", "retransmission_after_rnr"}),
    ],
)
def test_tshark_finds_a_injected_fault(
    fault: str, statuses: set[str], tshark: Tshark, tmp_path: Path
) -> None:
    made = tmp_path / "made.pcapng"
    answer = rocelab("annotate", str(CAPTURES / f"fault-{fault}.pcap"), "-o", str(made))
    assert answer.returncode == 0, answer.stderr
    check_round_trip(tshark, made)
    written = comments(made)
    where = {
        status: {
            number
            for number, read in written.items()
            if any(keys.get("psn_status") == [status] for keys in read)
        }
        for status in statuses
    }
    assert all(where.values()), where
    words = " || ".join(f'rocelab.psn.status == "{status}"' for status in sorted(statuses))
    shown = tshark.run("-r", made, "-Y", words, "-T", "fields", "-e", "frame.number").split()
    assert {int(number) for number in shown} == set().union(*where.values())


def test_inputs_are_never_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "capture.pcap"
    source.write_bytes((CAPTURES / "rc-v2-ipv4.pcap").read_bytes())
    link = tmp_path / "link.pcapng"
    link.hardlink_to(source)
    (tmp_path / "soft.pcapng").symlink_to(source)
    for output in (source, link, tmp_path / "soft.pcapng"):
        answer = rocelab("annotate", str(source), "-o", str(output))
        assert answer.returncode == 2
        assert "is an input" in answer.stderr
    other = str(CAPTURES / "rc-v1.pcap")
    answer = rocelab("annotate", other, "--trace", str(source), "-o", str(link))
    assert answer.returncode == 2
    assert source.read_bytes() == (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    sample = str(CAPTURES / "rc-v2-ipv4.pcap")
    out = str(tmp_path / "out.pcapng")
    text = tmp_path / "text"
    text.write_text("no capture\n")
    for words, message in (
        ((str(tmp_path / "none.pcap"), "-o", out), "cannot read"),
        ((str(fifo), "-o", out), "is not a file"),
        ((sample, "-o", str(fifo)), "is not a regular file"),
        ((sample, "-o", str(tmp_path / "no" / "out.pcapng")), "cannot write in"),
        ((str(text), "-o", out), "neither pcap nor pcapng"),
        ((sample, "--trace", str(tmp_path / "none"), "-o", out), "cannot read"),
        ((sample, "--trace", str(text), "-o", out), "neither pcap nor pcapng"),
    ):
        answer = rocelab("annotate", *words)
        assert answer.returncode == 2, words
        assert message in answer.stderr
        assert "Errno" not in answer.stderr
        assert "Traceback" not in answer.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"fifo", "text"}


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    made = tmp_path / "made.pcapng"
    made.write_text("rocelab annotate wrote this\n")
    words = ["annotate", str(CAPTURES / "testbed-send-bw-1024.pcap"), "-o", str(made)]
    done = subprocess.run(
        [sys.executable, "-m", "rocelab", *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert done.returncode == 2, done.stderr
    assert "could not be written" in done.stderr
    assert "File too large" in done.stderr
    assert made.read_text() == "rocelab annotate wrote this\n"
    assert [path.name for path in tmp_path.iterdir()] == ["made.pcapng"]


def test_a_cut_capture_is_annotated_up_to_the_cut(tmp_path: Path) -> None:
    made = tmp_path / "made.pcapng"
    answer = rocelab("annotate", str(CAPTURES / "cut.pcap"), "-o", str(made))
    assert answer.returncode == 1, answer.stderr
    assert "ends within a record" in answer.stdout
    assert comments(made)
