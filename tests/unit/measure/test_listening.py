# SPDX-License-Identifier: GPL-2.0-or-later
"""A server says when it listens, and what it prints besides is its own."""

from __future__ import annotations

import socket
import sys

import pytest

from rocelab.errors import TestbedError
from rocelab.measure import listening
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection

_SERVER = """
import socket, sys
print("starting", flush=True)
print("a warning", file=sys.stderr, flush=True)
six = sys.argv[2] == "6"
family, any_address = (socket.AF_INET6, "::") if six else (socket.AF_INET, "")
here = (any_address, int(sys.argv[1]))
with socket.create_server(here, family=family, dualstack_ipv6=six) as server:
    server.accept()
sys.exit(7)
"""


@pytest.fixture
def node() -> CommandNode:
    return CommandNode("n1", DataLink("lo", "127.0.0.1", "", 1500), LocalConnection(is_root=False))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("family", ["4", "6"])
def test_a_server_that_listens(node: CommandNode, family: str) -> None:
    port = _free_port()
    argv = (sys.executable, "-c", _SERVER, str(port), family)
    process = node.start(listening.saying(argv, port, by_rdma_cm=False))
    listening.wait(process, timeout=30)
    socket.create_connection(("127.0.0.1", port)).close()
    done = listening.own(process.wait(timeout=30))
    assert (done.returncode, done.stdout, done.stderr) == (7, "starting\n", "a warning\n")


def test_a_server_gets_no_child_that_it_does_not_know(node: CommandNode) -> None:
    """As vsftpd dies of one."""
    port = _free_port()
    script = """
import os, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    server.accept()
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    sys.exit(0)
sys.exit(1)
"""
    argv = (sys.executable, "-c", script, str(port))
    process = node.start(listening.saying(argv, port, by_rdma_cm=False))
    listening.wait(process, timeout=30)
    socket.create_connection(("127.0.0.1", port)).close()
    assert process.wait(timeout=30).returncode == 0


def test_a_server_that_ends_before(node: CommandNode) -> None:
    argv = ("sh", "-c", "echo no device >&2; exit 1")
    process = node.start(listening.saying(argv, _free_port(), by_rdma_cm=False))
    with pytest.raises(TestbedError, match="ended before it printed") as caught:
        listening.wait(process, timeout=30)
    assert "no device" in caught.value.cause
    assert process.wait(timeout=30).returncode == 1


@pytest.mark.slow
def test_a_server_that_hangs(node: CommandNode) -> None:
    process = node.start(listening.saying(("sleep", "60"), _free_port(), by_rdma_cm=False))
    with pytest.raises(TestbedError, match="did not print"):
        listening.wait(process, timeout=0.5)
    process.kill()
    assert process.wait(timeout=30).returncode


@pytest.mark.parametrize("word", ["a b", "$HOME", "it's", "%s", "{}", ""])
def test_words_stay_words(node: CommandNode, word: str) -> None:
    argv = ("printf", "%s", word)
    done = node.start(listening.saying(argv, 1, by_rdma_cm=True)).wait(timeout=30)
    assert done.stdout == word
