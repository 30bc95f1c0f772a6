# SPDX-License-Identifier: GPL-2.0-or-later
"""A shared report tells nothing of hosts, people and places, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from command_line import in_process as rocelab
from rocelab.record.share import Mask
from synthetic_run import Synthetic

SECRETS = {
    "kernel": "6.12 built by evelyn@builder.example.com in /home/evelyn/linux",
    "cpu": {"model": "at 192.168.77.5 or fe80::5054:ff:fe44:1%eth0", "count": 1},
    "nic": {"netdev": "data0", "ipv4": "10.99.1.7", "mac": "52:54:00:aa:bb:cc", "mtu": 4200},
    "driver": {
        "path": "/srv/secret/rdma_rxe.ko",
        "version": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIabc",
    },
}
HIDDEN = (
    *("builder", "evelyn", "192.168", "fe80", "10.99", "52:54"),
    *("secret", "AAAAC3", "torchhost", "ovenhost"),
)


def test_what_names_a_place_is_masked(tmp_path: Path) -> None:
    run = Synthetic(
        transports=("tcp",), tests=("write_lat",), sizes=(64,), node_names=("torchhost", "ovenhost")
    ).write(tmp_path / "run")
    meta = json.loads((run / "run.json").read_text())
    meta["nodes"]["torchhost"] |= SECRETS
    (run / "run.json").write_text(json.dumps(meta))
    cell = next((run / "cells").iterdir()) / "cell.json"
    content = json.loads(cell.read_text())
    content |= {
        "status": "error",
        "error": {"what": "torchhost is down", "cause": "password hunter2"},
    }
    cell.write_text(json.dumps(content))

    answer = rocelab("report", str(run), "--share", str(tmp_path / "out"))
    assert answer.returncode == 0, answer.stderr
    assert "masked: host names" in answer.stderr
    assert "kept: versions" in answer.stderr
    page = (tmp_path / "out/report.html").read_text()
    table = (tmp_path / "out/results.csv").read_text()
    found = [word for word in (*HIDDEN, "hunter2") if word in page or word in table]
    assert not found
    assert "Masked: host names" in page
    assert set(pl.read_csv(tmp_path / "out/results.csv")["node"]) <= {"n1", "n2", "wire"}
    # the run itself stays as it is, and its own report is not written
    assert not (run / "report.html").exists()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html",
        "results.csv",
    ]


@pytest.mark.parametrize(
    "text",
    ["2026-11-21T03:15:00Z", "03:15:00", "bytes/s", "1/s", "/lib/modules/6.12/x.ko", "7.2.22+b3"],
)
def test_what_is_measured_stays(text: str) -> None:
    assert Mask({"n": "n1"}).text(text) == text


def test_the_same_thing_keeps_the_same_word() -> None:
    mask = Mask({"torchhost": "n1"})
    assert mask.text("torchhost 10.0.0.1") == "n1 [address 1]"
    assert mask.text("10.0.0.2 torchhost-2 10.0.0.1") == "[address 2] torchhost-2 [address 1]"
