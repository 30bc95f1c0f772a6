# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab hosts prepare --dry-run` says what root would do, and does nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rocelab.testbed.hosts import dry_run, prebuilt
from rocelab.testbed.node import Completed

ROOT = Path(__file__).parents[3]
ANSWERS = {
    "uname -r": "6.12.1-test\n",
    "sh -c \nuname -r": "6.12.1-test\nversion \n/sys/class/infiniband/rxe7/parent:eth1\n",
    "sh -c for each": "/lib/modules/6.12.1-test/updates/rdma_rxe.ko\n",
}


@dataclass
class Host:
    """A host with the stock driver loaded, one device, and a module of its own."""

    name: str = "h1"
    link: None = None
    ran: list[str] = field(default_factory=list)

    @property
    def root(self) -> Host:
        return self

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        line = " ".join(argv)
        self.ran.append(line)
        missing = line.startswith("cat /var/lib")
        text = next((text for key, text in ANSWERS.items() if line.startswith(key)), "")
        return Completed(tuple(argv), int(missing), text, "")


def test_only_reads_and_names_every_root_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prebuilt, "find", lambda _release: None)
    host = Host()
    lines = dry_run.commands(host)  # type: ignore[arg-type]
    module = "/lib/modules/6.12.1-test/updates/rdma_rxe.ko"
    order = (
        "install -d -m 700 /var/lib/rocelab",
        f"cp -a {module} /var/lib/rocelab/files{module}",
        "rdma link delete rxe7",
        "rmmod rdma_rxe",
        "install",
        "modprobe rdma_rxe",
        "rdma link add rxe7 type rxe netdev eth1",
        "rm -rf -- /tmp/rocelab-XXXXXX",
    )
    unread = iter(lines)
    assert all(any(want in line for line in unread) for want in order), lines
    changes = re.compile(r"^(rm|rmmod|modprobe|rdma|install|cp|tee|mktemp|tar)\b|\bmake\b [^>]*-C")
    assert not [line for line in host.ran if changes.search(line)]
    page = (ROOT / "docs/root.md").read_text()
    programs = {"make" if " make " in line else line.split()[0] for line in lines}
    assert not {name for name in programs if f"`{name}`" not in page}
