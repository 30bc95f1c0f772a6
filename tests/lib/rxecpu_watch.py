# SPDX-License-Identifier: GPL-2.0-or-later
"""rxecpu on a node, for tests: run it around something, and look into its documents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rocelab.testbed.node import Node

Document = dict[str, Any]
OWNERS = {"benchmark", "rxe", "network", "other"}


def check_sums(document: Document) -> None:
    """What must hold of any document: above all that the parts sum to wall times CPUs."""
    assert document["schema"] == "rocelab.rxecpu/1"
    wall = document["duration_ns"] * document["cpus"]
    assert sum(row["ns"] for row in document["rows"]) == pytest.approx(wall, rel=0.01)
    per_cpu: Counter[int] = Counter()
    for row in document["rows"]:
        per_cpu[row["cpu"]] += row["ns"]
        assert row["ns"] > 0
        assert row["owner"] in ({"none"} if row["context"] == "idle" else OWNERS), row
    assert len(per_cpu) == document["cpus"]
    for ns in per_cpu.values():
        assert ns == pytest.approx(document["duration_ns"], rel=0.05)
    assert document["late"] == 0
    assert document["event_ns"] > 0
    assert document["events"] > 0


def share(document: Document, *, context: str = "", owner: str = "") -> int:
    """ns in a context (`softirq`: of any kind) and of an owner; either may be left out."""
    return sum(
        row["ns"]
        for row in document["rows"]
        if (row["context"] + ".").startswith(f"{context}." if context else "")
        and owner in ("", row["owner"])
    )


@contextmanager
def rxecpu(node: Node, *options: str) -> Iterator[Document]:
    """Around what the context does; the document is filled in when it ends."""
    document: Document = {}
    process = node.start(["rxecpu", "--json", "--node", node.name, *options])
    try:
        process.wait_for_line("rxecpu: ready", timeout=180)
        yield document
        process.interrupt()
        done = process.wait(timeout=60)
        assert done.returncode == 0, done.stderr
        document.update(json.loads(done.stdout))
    finally:
        process.kill()


def of_command(node: Node, *command: str) -> tuple[Document, str]:
    """The document of a command's run, and what the command printed."""
    path = "/tmp/rxecpu.json"
    done = node.run(["rxecpu", "--json", "--output", path, "--", *command], timeout=300)
    document: Document = json.loads(node.run(["cat", path]).stdout)
    return document, done.stdout
