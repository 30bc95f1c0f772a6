# SPDX-License-Identifier: GPL-2.0-or-later
"""Files come from a node as a stream, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rocelab.errors import TestbedError
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection

LINK = DataLink("", "", "", 0)


def test_a_file_comes_whole(tmp_path: Path) -> None:
    remote, local = tmp_path / "remote", tmp_path / "local"
    remote.write_bytes(os.urandom(3 << 20))
    CommandNode("here", LINK, LocalConnection(is_root=False)).get(str(remote), local)
    assert local.read_bytes() == remote.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["local", "remote"]


def test_a_missing_file_leaves_nothing(tmp_path: Path) -> None:
    node = CommandNode("here", LINK, LocalConnection(is_root=False))
    with pytest.raises(TestbedError, match="cannot read here:/absent") as caught:
        node.get("/absent", tmp_path / "local")
    assert "No such file" in caught.value.cause
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Hanging(LocalConnection):
    """A connection over which nothing comes."""

    def command(self, argv: Sequence[str]) -> list[str]:
        return ["sleep", "60"]


def test_a_copy_that_stands_still_is_given_up(tmp_path: Path) -> None:
    node = CommandNode("here", LINK, Hanging(is_root=True), patience=0.001)
    with pytest.raises(TestbedError, match="no byte of it"):
        node.get("/any", tmp_path / "local")
    assert not list(tmp_path.iterdir())
