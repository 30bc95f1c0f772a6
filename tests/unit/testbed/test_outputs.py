# SPDX-License-Identifier: GPL-2.0-or-later
"""Several commands run as one, and what each printed comes back apart."""

from __future__ import annotations

import pytest

from rocelab.errors import TestbedError
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection
from rocelab.testbed.node.outputs import outputs

NODE = CommandNode("here", DataLink("", "", "", 0), LocalConnection(is_root=False))


def test_each_output_comes_apart() -> None:
    """Also with no line end, with nothing, from what fails or is missing, and with any word."""
    commands = (
        ("printf", "a\\n\\nb\\n"),
        ("printf", "no line end"),
        ("true",),
        ("sh", "-c", "echo before; exit 3"),
        ("no-such-program-anywhere", "x"),
        ("echo", "$(id); 'quoted' rocelab-0000"),
        ("cat",),
        ("echo", "last"),
    )
    assert outputs(NODE, commands) == [
        *("a\n\nb\n", "no line end", "", "before\n", ""),
        *("$(id); 'quoted' rocelab-0000\n", "", "last\n"),
    ]
    assert outputs(NODE, ()) == []


def test_a_shell_that_ends_early_is_an_error() -> None:
    with pytest.raises(TestbedError, match="here answered 1 of 3 commands"):
        outputs(NODE, (("true",), ("sh", "-c", "kill -KILL $PPID"), ("true",)))
