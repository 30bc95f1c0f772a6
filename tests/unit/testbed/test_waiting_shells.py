# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on a host by shells that wait there: as over a session of their own, but sooner."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import fake_host
from polling import wait_until
from rocelab import limits
from rocelab.errors import TestbedError
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.ssh_node import SshNode
from rocelab.testbed.node.waiting_shells import ShellEndedError, WaitingShell
from rocelab.testbed.ssh import inventory
from rocelab.testbed.ssh.connect import connect

pytestmark = pytest.mark.slow  # each starts processes and waits for them

_KILL = ("sh", "-c", 'kill -KILL "$PPID"')
HOST = inventory.Host("n1", "node1", "eth1")
# a login shell that says something
_LOGIN = """#!/bin/sh
for word; do [ "$word" != -M ] || exit 0; done
for last; do :; done
[ "$last" != host ] || exit 0
echo login >>"$LOGINS"
[ ! -e "$LOGINS.cut" ] || { echo "Connection closed by remote host" >&2; exit 255; }
echo "Welcome to node1"
echo "You have mail" >&2
PATH=$FAKE:$PATH exec sh -c "$last"
"""


@pytest.fixture
def logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for each login shell that the host has started."""
    fake_host.install(tmp_path, monkeypatch)
    (tmp_path / "ssh").write_text(_LOGIN)
    monkeypatch.setenv("LOGINS", str(tmp_path / "logins"))
    return tmp_path / "logins"


@pytest.fixture
def host(logins: Path) -> Iterator[SshNode]:
    with connect([HOST], root_for="") as (node,):
        yield node


def test_commands_share_login_shells(host: SshNode, logins: Path, tmp_path: Path) -> None:
    """However many there are, also what is started, or copied from there.

    So a slow login shell costs its time once.
    """
    for _ in range(20):
        assert host.run(["echo", "here"]).stdout == "here\n"
        done = host.start(["echo", "there"]).wait(timeout=30)
        assert (done.returncode, done.stdout) == (0, "there\n")
        host.get("/proc/version", tmp_path / "copy")
        assert (tmp_path / "copy").read_text() == Path("/proc/version").read_text()
    assert len(logins.read_text().splitlines()) <= 3


def test_status_and_both_streams_are_the_commands(host: SshNode) -> None:
    """Whatever the login shell printed, and without a newline at the end."""
    script = "printf said; printf complained >&2; exit 7"
    done = host.run(["sh", "-c", script], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "said", "complained")
    for status in (0, 1, 124, 137, 254, 255):
        done = host.run(["sh", "-c", f"exit {status}"], check=False)
        assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    assert host.run(["missing-program"], check=False).returncode == 127


@pytest.mark.parametrize("word", ["a b", "$HOME", "it's", 'say "no"', "two\nlines", "\\", "*", ""])
def test_words_stay_words(host: SshNode, word: str) -> None:
    assert host.run(["printf", "%s", word]).stdout == word


def test_what_a_command_leaves_is_its_own(host: SshNode) -> None:
    """Neither the folder nor a variable nor the input of the shell is another command's."""
    before = host.run(["pwd"]).stdout
    host.run(["cd", "/"], check=False)
    host.run(["exit", "3"], check=False)
    assert host.run(["pwd"]).stdout == before
    assert host.run(["cat"]).stdout == ""


def test_much_output_comes_whole(host: SshNode) -> None:
    """On both streams, more than a pipe holds."""
    both = "head -c 1000000 /dev/zero | tr '\\0' e >&2; head -c 1000000 /dev/zero | tr '\\0' o"
    done = host.run(["sh", "-c", both])
    assert (done.stdout, done.stderr) == ("o" * 1000000, "e" * 1000000)
    text = "x" * 100_000
    assert host.run(["printf", "%s", text]).stdout == text


def test_a_flood_is_given_up(host: SshNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PRINTED_BYTES", 1 << 20)
    with pytest.raises(TestbedError, match="printed over 1 MiB"):
        host.run(["yes"])
    assert host.run(["echo", "here"]).stdout == "here\n"


def test_commands_at_once(host: SshNode) -> None:
    """Each has a shell for itself."""
    numbers = list(range(8))
    texts = at_once(lambda i: host.run(["sh", "-c", f"sleep 0.2; echo {i}"]).stdout, numbers)
    assert texts == [f"{i}\n" for i in numbers]


def test_a_command_that_does_not_end_is_given_up(host: SshNode) -> None:
    with pytest.raises(TestbedError, match="did not end within 1 s"):
        host.run(["sleep", "60"], timeout=1)
    assert host.run(["echo", "still"]).stdout == "still\n"


def test_a_shell_that_has_ended_is_replaced(host: SshNode) -> None:
    with pytest.raises(TestbedError, match="node n1 does not answer"):
        host.run(_KILL, check=False)
    assert host.run(["echo", "again"]).stdout == "again\n"


def test_they_wait_again_on_a_connection_that_was_closed(host: SshNode, logins: Path) -> None:
    host.close()
    assert host.connect(timeout=30)
    before = len(logins.read_text().splitlines())
    for _ in range(5):
        host.run(["true"])
    assert len(logins.read_text().splitlines()) <= before + 2


def test_a_lost_connection_is_one(host: SshNode, logins: Path) -> None:
    """If no new shell can be had, ssh's message says why."""
    logins.with_name("logins.cut").touch()

    def none_waits() -> bool:
        with pytest.raises(TestbedError, match="node n1 does not answer") as caught:
            host.run(_KILL, check=False)
        return caught.value.cause == "Connection closed by remote host"

    wait_until("no shell waits", none_waits)
    process = host.start(["echo", "here"])
    with pytest.raises(TestbedError, match="ended before it printed") as caught:
        process.wait_for_line("here", timeout=30)
    assert caught.value.cause == "Connection closed by remote host"
    assert process.wait(timeout=30).returncode == 255


def test_a_started_command_says_it_at_once(host: SshNode) -> None:
    """Each line as it comes; a shell may run others before, meanwhile and after."""
    for text in ("", "one", "rocelab-", "two\n\n"):
        script = 'echo begun; read -r _ <"$1"; printf %s "$2"; printf %s "$2" >&2; exit 7'
        fifo = host.run(["sh", "-c", 'f=$(mktemp -u) && mkfifo "$f" && echo "$f"']).stdout.strip()
        process = host.start(["sh", "-c", script, "sh", fifo, text])
        process.wait_for_line("begun", timeout=30)
        host.run(["sh", "-c", 'echo >"$1"; rm "$1"', "sh", fifo])
        done = process.wait(timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (7, f"begun\n{text}", text)


def test_a_started_command_can_be_interrupted_and_killed(host: SshNode) -> None:
    """What it left behind writes nothing into what others say."""
    late = 'trap "" HUP; (sleep 0.5; echo late; echo late >&2) & echo begun; wait'
    for end in ("interrupt", "kill"):
        process = host.start(["sh", "-c", late])
        process.wait_for_line("begun", timeout=30)
        getattr(process, end)()
        assert process.wait(timeout=30).returncode > 128
        done = host.run(["sh", "-c", "sleep 0.7; echo mine"])
        assert (done.stdout, done.stderr) == ("mine\n", "")
        process.kill()
        assert host.run(["echo", "still"]).stdout == "still\n"


def test_a_started_command_whose_shell_ends(host: SshNode) -> None:
    process = host.start(["sh", "-c", 'kill -KILL "$PPID"; echo last'])
    assert process.wait(timeout=30).returncode == 255


def test_a_process_with_a_lifeline(host: SshNode) -> None:
    """Its standard input closes when it is released; that of others is empty."""
    process = host.start(["sh", "-c", "echo began; cat >&2; echo over"], lifeline=True)
    process.wait_for_line("began", timeout=30)
    with pytest.raises(TestbedError, match="did not print 'over' within"):
        process.wait_for_line("over", timeout=0.5)
    process.release()
    assert process.wait(timeout=30).stdout == "began\nover\n"
    process = host.start(["cat"])
    process.say("unheard")
    assert process.wait(timeout=30).stdout == ""


def test_a_line_for_a_process_is_not_the_shells(host: SshNode) -> None:
    """However early it comes."""
    for _ in range(5):
        process = host.start(["cat"], lifeline=True)
        process.say("echo not for a shell")
        process.release()
        assert process.wait(timeout=30).stdout == "echo not for a shell\n"


def test_no_shell_is_left(logins: Path) -> None:
    """Neither here nor there, when the hosts are logged out."""
    with connect([HOST], root_for="") as (node,):
        pids = at_once(lambda _: node.run(["sh", "-c", 'echo "$PPID"']).stdout, list(range(6)))
    for pid in {int(pid) for pid in pids}:
        wait_until(f"shell {pid} ends", lambda pid=pid: not Path(f"/proc/{pid}").exists())


def test_a_shell_that_never_was() -> None:
    shell = WaitingShell(["sh", "-c", "echo no shell >&2; exit 1"])
    with pytest.raises(ShellEndedError) as caught:
        shell.run(["true"], 30)
    assert caught.value.output == b"no shell\n"
    shell.close()
    silent = WaitingShell(["sleep", "60"])
    with pytest.raises(subprocess.TimeoutExpired):
        silent.run(["true"], 0.5)
    silent.close()
