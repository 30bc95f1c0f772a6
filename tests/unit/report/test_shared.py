# SPDX-License-Identifier: GPL-2.0-or-later
"""A shared report tells nothing of hosts, people and places, and says so."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import in_process as rocelab
from rocelab.errors import ExitCode
from rocelab.record import known_names, read, share, share_fields
from rocelab.record.share import Mask
from rocelab.record.share_fields import Shape
from rocelab.record.share_words import WORDS
from rocelab.studies import library
from synthetic_run import Synthetic

SECRETS = {
    "kernel": "6.12.117-alicebuild built by evelyn@builder.corp.example in /home/evelyn/linux",
    "cpu": {"model": "at 192.168.77.5 or fe80::5054:ff:fe44:1%eth0", "count": 1},
    "nic": {"netdev": "data0", "ipv4": "10.99.1.7", "mac": "52:54:00:aa:bb:cc", "mtu": 4200},
    "driver": {
        "path": "/srv/secret/rdma_rxe.ko",
        "version": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIabc",
    },
    "invented": "hunter2 of a field that nobody knows",
}
HIDDEN = (
    *("builder", "evelyn", "192.168", "fe80", "10.99", "52:54", "alicebuild", "corp.example"),
    *("secret", "AAAAC3", "torchhost", "ovenhost", "hunter2", "lab.example"),
)
NODES = ("torchhost.lab.example", "ovenhost.lab.example")
LEAKS = (
    "the peer is 10.44.0.1.",
    "10.44.0.1..2",
    "10.44.0.1/24",
    "-I/home/alice",
    "~alice/x",
    "/lib/../home/alice",
    "/home/alice/my savings/x",
    "C:\\Users\\alice\\x",
    "5254.0044.0001",
    "52-54-00-44-00-01",
    "525400440001",
    "52:54:00:44:00:01.",
    "2001:470:0:1:2:3:4:5",
    "fe80::1",
    "[::ffff:10.44.0.1]:80",
    "lab.example",
    "fileserver-a17",
    "alice@10.44.0.1:x",
    "ALICE",
    "rdma_alice",
    "mlx5_alice0",
    "\N{CYRILLIC SMALL LETTER A}\N{CYRILLIC SMALL LETTER EL}",
)
"""Texts, of which no four letters or digits in a row may stay but a word that may pass."""


def shared(run: Path, out: Path) -> str:
    answer = rocelab("report", str(run), "--share", str(out))
    assert answer.returncode == 0, answer.stderr
    files = (out / "report.html", out / "results.csv")
    return html.unescape("\n".join(path.read_text() for path in files))


def edit(path: Path, change: Any) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def small(folder: Path, nodes: tuple[str, str] = NODES) -> Path:
    run = Synthetic(
        transports=("tcp",), tests=("write_lat",), sizes=(64,), repetitions=1, node_names=nodes
    )
    return run.write(folder)


def pieces(text: str) -> list[str]:
    """What of a leak may be in no file."""
    return [word for word in re.findall(r"[^\W_]{4,}", text) if word.lower() not in WORDS]


def test_a_command_of_ones_own_is_masked(tmp_path: Path) -> None:
    """Its words, its folder and its packages say who wrote it, and where."""
    run = small(tmp_path / "run")
    own = {
        "client": ["./torchkv-bench", "--token=hunter2", "/home/evelyn/x", "{peer}"],
        "server": ["torchkv", "--listen", "builder.corp.example"],
        "ready": "line:torchkv of evelyn is up",
        "regex": "torchkv rate: (?P<value>[0-9]+)",
        "folder": "secret-project",
    }

    def with_command(meta: dict[str, Any]) -> None:
        benchmark = {"tool": "command", "test": "time", "label": "torchkv", "command": own}
        meta["plan"] |= {"name": "torchkv", "benchmark": [benchmark], "benchmarks": [benchmark]}
        meta["plan"]["testbed"] |= {"packages": ["torchkv-dev", "jq"]}

    edit(run / "run.json", with_command)
    cell = next((run / "cells").iterdir()) / "cell.json"
    edit(cell, lambda content: content.update(command=own["client"], server=own["server"]))
    names = {"tool": "command", "program": "torchkv-bench", "label": "torchkv"}
    table = pl.read_parquet(run / "results.parquet")
    given = {name: pl.lit(text) for name, text in names.items() if name in table.columns}
    table.with_columns(**given).write_parquet(run / "results.parquet")
    whole = tmp_path / "whole"
    assert rocelab("report", str(run), "--export", str(whole)).returncode == 0
    assert any(b"torchkv" in path.read_bytes() for path in whole.rglob("*") if path.is_file())
    text = shared(run, tmp_path / "out")
    hidden = ("torchkv", "hunter2", "evelyn", "builder", "corp.example", "secret-project")
    assert [word for word in hidden if word in text] == []


def test_what_names_a_place_is_masked(tmp_path: Path) -> None:
    run = small(tmp_path / "run")
    edit(run / "run.json", lambda meta: meta["nodes"][NODES[0]].update(SECRETS))
    cell = next((run / "cells").iterdir()) / "cell.json"
    error = {"what": "torchhost is down", "cause": "password hunter2"}
    edit(cell, lambda content: content.update(status="error", error=error))

    answer = rocelab("report", str(run), "--share", str(tmp_path / "out"))
    assert answer.returncode == 0, answer.stderr
    assert "masked: host names" in answer.stderr
    assert "kept: versions" in answer.stderr
    page = (tmp_path / "out/report.html").read_text()
    table = (tmp_path / "out/results.csv").read_text()
    assert not [word for word in HIDDEN if word in page or word in table]
    assert "Masked: host names" in page
    assert "6.12.117-[masked" in page
    assert "rocelab-0123456789ab" in page
    assert set(pl.read_csv(tmp_path / "out/results.csv")["node"]) <= {"n1", "n2", "wire"}
    # the run itself stays as it is, and its own report is not written
    assert not (run / "report.html").exists()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html",
        "results.csv",
    ]


@pytest.mark.parametrize("leak", LEAKS)
def test_what_patterns_let_through(leak: str) -> None:
    """In every shape that takes text."""
    mask = Mask(())
    for shape in Shape:
        for text in (leak, f"see {leak}", f"{leak},", f"rdma_rxe ({leak})", f"6.12.1-{leak}"):
            masked = mask.text(text, shape)
            assert not [word for word in pieces(leak) if word in masked], (shape, masked)


def test_every_field_and_column_with_every_leak(tmp_path: Path) -> None:
    """Each text and key of the run's files is replaced by all leaks at once."""
    run = small(tmp_path / "run")
    leak = " ".join(LEAKS)

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: filled(item) for key, item in value.items() if key != "schema"}
            return kept | ({leak: leak} if value else {})
        if isinstance(value, list):
            return [filled(item) for item in value]
        return leak if isinstance(value, str) else value

    for path in (run / "run.json", *run.glob("cells/*/cell.json")):
        content = json.loads(path.read_text())
        path.write_text(json.dumps(filled(content) | {"schema": content["schema"]}))
    table = pl.read_parquet(run / "results.parquet")
    texts = ("driver", "program", "tool", "test", "transport", "kind", "unit", "run", "node")
    table.with_columns(pl.lit(leak).alias(name) for name in texts).write_parquet(
        run / "results.parquet"
    )
    text = shared(run, tmp_path / "out")
    assert not [word for word in ("alice", "10.44", "fe80", "5254", "a17") if word in text.lower()]


@pytest.mark.parametrize("column", ["driver", "program", "tool", "test", "kind", "unit"])
def test_columns_of_the_table(tmp_path: Path, column: str) -> None:
    run = small(tmp_path / "run")
    path = run / "results.parquet"
    pl.read_parquet(path).with_columns(
        pl.lit("/home/alice/my hut/torchhost").alias(column)
    ).write_parquet(path)
    text = shared(run, tmp_path / "out")
    assert "alice" not in text
    assert "torch" not in text


@settings(max_examples=300)
@given(
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=20),
    st.sampled_from(["evelyn", "10.99.1.7", "52:54:00:aa:bb:cc", "oven-17.lab.example"]),
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=20),
    st.sampled_from([*Shape]),
)
def test_nothing_around_a_name_lets_it_through(
    before: str, secret: str, after: str, shape: Shape
) -> None:
    masked = Mask(("oven-17.lab.example",)).text(before + secret + after, shape)
    assert secret not in masked
    again = known_names.hits({"x.csv": masked.encode()}, [secret])
    assert not list(again)


@settings(max_examples=200)
@given(
    st.recursive(
        st.sampled_from(["evelyn", "hunter2", "10.99.1.7"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["nodes", "plan", "n1", "settings", "evelyn", "error", "what"]),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from([share_fields.RUN, share_fields.CELL]),
)
def test_no_document_lets_a_text_through(document: Any, fields: Any) -> None:
    masked = json.dumps(Mask(("n1",)).value(document, fields))
    assert not [word for word in ("evelyn", "hunter2", "10.99.1.7") if word in masked]


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T03:15:00Z", "03:15:00", "bytes/s", "1/s", "/lib/modules/6.12.1-amd64/x.ko",
        "1:7.2+dfsg-7+deb12u18+b3", "6.12.118+deb13-amd64 #1 SMP PREEMPT_DYNAMIC Debian",
        "AMD EPYC 7763 64-Core Processor", "Intel(R) Xeon(R) Platinum 8480+", "rdma_rxe (stock)",
        "rdma_rxe rocelab-0123456789ab", "2.5 Gb/sec (1X SDR)", "4096\t131072\t6291456",
        "Mitigation: usercopy/swapgs barriers and __user pointer sanitization", "n1 sent_pkts",
        "RoCE v2 frames on the wire", "mlx5_core", "16.35.2000 (MT_0000000359)",
    ],
)  # fmt: skip
def test_what_is_measured_stays(text: str) -> None:
    assert Mask(("n1",)).words(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "20261127T235005Z-demo", "perftest-write_lat.rxe-v2.r01", "stage.tx.icrc.mean",
        "netdev.rx_length_errors", "cpu.softirq.net_rx.network", "latency-n2400", "gaiser2010",
        "gaiser2010-quick",
    ],
)  # fmt: skip
def test_names_of_ours_stay(name: str) -> None:
    assert Mask((), also=library.NAMES).name(name) == name


def test_the_same_thing_keeps_the_same_word() -> None:
    mask = Mask(("torchhost",))
    assert mask.words("torchhost 10.0.0.1") == "n1 [masked 1]"
    assert mask.words("10.0.0.2 torchhost-2 10.0.0.1") == "[masked 2] n1-2 [masked 1]"


def test_hosts_with_names_of_ours_can_be_shared(tmp_path: Path) -> None:
    text = shared(small(tmp_path / "run", ("server", "client")), tmp_path / "out")
    assert set(pl.read_csv(tmp_path / "out/results.csv")["node"]) <= {"n1", "n2", "wire"}
    assert "n1 sent_pkts" in text or "n1" in text


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("torchhost", "see TorchHost."),
        ("torchhost.lab.example", "at lab.example"),
        ("10.44.0.1", "10.44.0.1..2"),
        ("52:54:00:44:00:01", "5254.0044.0001"),
        ("52:54:00:44:00:01", "525400440001"),
        ("2001:db8::1", "2001:0db8:0000:0000:0000:0000:0000:0001"),
        ("/home/alice", "alice"),
    ],
)
@pytest.mark.parametrize("file", ["report.html", "results.csv", "figure.svg", "x.parquet"])
def test_the_search_finds_what_was_let_through(name: str, written: str, file: str) -> None:
    names = known_names.of_run([], [{"host": name, "text": name}])
    content = b"\xff\x00" + f"<p>x {written} y</p>".encode()
    assert list(known_names.hits({file: content}, names))
    assert not list(known_names.hits({file: b"<p>packets of 64 bytes</p>"}, names))


def test_a_name_that_was_let_through_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small(tmp_path / "run")
    whole = read.load(run)
    monkeypatch.setattr(share, "mask_run", lambda run, also=(): whole)
    answer = rocelab("report", str(run), "--share", str(tmp_path / "out"))
    assert answer.returncode == ExitCode.USAGE
    assert "nothing was written" in answer.stderr
    assert "would name" in answer.stderr
    assert not (tmp_path / "out").exists()
