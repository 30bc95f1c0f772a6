# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's GID: where it is found, how much of the table is read, and what is said without one."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rocelab.errors import CellError
from rocelab.testbed import gid
from rocelab.testbed.node import Completed, Node

ENTRIES = 1024
"""Of rxe's table."""
V1, V2 = "IB/RoCE v1", "RoCE v2"


class Host:
    """A node whose commands run here, on a folder in place of a port's in sysfs."""

    name = "n1"
    link = SimpleNamespace(ipv4="10.44.0.1")

    def __init__(self, folder: Path, gids: dict[int, tuple[str, str]]) -> None:
        self.folder = folder
        self.read: list[int] = []
        for table in ("gids", "gid_attrs/types"):
            (folder / table).mkdir(parents=True)
        for at, (address, gid_type) in gids.items():
            for table, value in (("gids", address), ("gid_attrs/types", gid_type)):
                (folder / table / f"{at}").write_text(f"{value}\n")
        for at in set(range(ENTRIES)) - set(gids):
            (folder / f"gids/{at}").write_text("0000:0000:0000:0000:0000:0000:0000:0000\n")

    def run(self, argv: Sequence[str], **_how: Any) -> Completed:
        assert argv[-1] == "/sys/class/infiniband/rxe0/ports/1"
        here = [*argv[:-1], str(self.folder)]
        done = subprocess.run(here, capture_output=True, text=True, check=False)
        self.read.append(len(done.stdout.splitlines()))
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


def find(host: Host, gid_type: str) -> int:
    return gid.find(cast("Node", host), "rxe0", 1, gid_type).index


def test_the_first_entries_are_read_first(tmp_path: Path) -> None:
    host = Host(tmp_path, {0: ("fe80::1", V2), 4: ("::ffff:10.44.0.1", V2)})
    assert find(host, V2) == 4
    assert host.read == [12]


def test_an_entry_far_behind_is_found(tmp_path: Path) -> None:
    """As after many addresses, of which the first are gone."""
    host = Host(tmp_path, {4: ("::ffff:10.44.0.1", V1), 700: ("::ffff:10.44.0.1", V2)})
    assert find(host, V2) == 700


def test_what_there_is_instead_is_said(tmp_path: Path) -> None:
    host = Host(tmp_path, {0: ("fe80::1", V2), 900: ("::ffff:10.44.0.9", V2)})
    with pytest.raises(
        CellError, match=r"n1 has no RoCE v2 GID for 10\.44\.0\.1; its GIDs: 0: fe80"
    ):
        find(host, V2)
    with pytest.raises(CellError, match="900: ::ffff:"):
        find(host, V1)


def test_an_empty_table_is_said(tmp_path: Path) -> None:
    with pytest.raises(CellError, match="its GIDs: none"):
        find(Host(tmp_path, {}), V2)
