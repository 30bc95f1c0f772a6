# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's command: its streams, its status, its signals and its server, on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from polling import wait_until
from rocelab.errors import (
    CellError,
    CommandError,
    CommandTimeoutError,
    StallError,
    TestbedError,
    UsageError,
)
from rocelab.measure.command import command_step, conduct, libraries, output
from rocelab.measure.command.attachment import Attachment
from rocelab.measure.command.files import Files
from rocelab.measure.command.not_started import NotExecutableError, NotFoundError
from rocelab.measure.command.request import On, Request
from rocelab.measure.rig import Rig
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job
from rocelab.plans.catalog import TESTS, TRANSPORTS
from rocelab.plans.command import CommandPlan
from rocelab.plans.ready import Ready
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node import Completed, DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection

MANY = 20_000_000


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    """Two nodes that are this machine; nothing of a command is left there afterwards."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    here = LocalConnection(is_root=False)
    nodes = [
        CommandNode(name, DataLink("lo", "127.0.0.1", "", 65536), here) for name in ("n1", "n2")
    ]
    yield cast("Testbed", SimpleNamespace(nodes=nodes, alive=lambda: None))
    assert list(tmp_path.iterdir()) == []
    mark = f"ROCELAB_EXEC={tmp_path}/".encode()
    wait_until(
        "no process is left",
        lambda: not any(mark in environment for environment in _environments()),
    )


def _environments() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


def run(testbed: Testbed, *argv: str, **options: Any) -> int:
    request = Request(argv, transport=TRANSPORTS["tcp"], **options)
    return conduct.run(request, testbed).status


@pytest.mark.parametrize("code", [0, 1, 2, 124, 125, 126, 127, 128, 130, 137, 254, 255])
def test_the_status_is_the_commands(testbed: Testbed, code: int) -> None:
    assert run(testbed, "sh", "-c", f"exit {code}") == code


@pytest.mark.long
def test_every_status_and_every_signal(testbed: Testbed) -> None:
    for code in range(256):
        assert run(testbed, "sh", "-c", f"exit {code}") == code
    stopping = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
    passing = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
    script = """
import os, resource, signal, sys
number = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if number != signal.SIGKILL:
    signal.signal(number, signal.SIG_DFL)
os.kill(os.getpid(), number)
"""
    for number in signal.valid_signals() - stopping:
        code = run(testbed, sys.executable, "-c", script, str(int(number)))
        assert code == (0 if number in passing else 128 + number)


@pytest.mark.parametrize("name", ["SEGV", "KILL", "PIPE", "TERM"])
def test_a_signal_that_ends_the_command(
    testbed: Testbed, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(testbed, "sh", "-c", f"kill -{name} $$") == 128 + signal.Signals[f"SIG{name}"]
    # no shell says so
    assert capfd.readouterr() == ("", "")


def test_streams_are_separate_and_unchanged(
    testbed: Testbed, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    every = "printf '%b' " + "".join(f"'\\0{n:03o}'" for n in range(256))
    assert run(testbed, "sh", "-c", f"{every}; {every} >&2") == 0
    assert capfdbinary.readouterr() == (bytes(range(256)), bytes(range(256)))


@pytest.mark.parametrize(
    "word",
    ["a b", "$HOME", "it's", "%s", "{x}", "", "new\nline", "--", "-n", "a=b", "\udcff\udcfe"],
)
def test_words_stay_words(
    testbed: Testbed, word: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert (
        run(
            testbed,
            sys.executable,
            "-c",
            "import os, sys; os.write(1, os.fsencode(sys.argv[1]))",
            word,
        )
        == 0
    )
    assert capfdbinary.readouterr().out == os.fsencode(word)


def test_input_reaches_the_first_node_only(
    testbed: Testbed, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = bytes(range(256)) * 5000
    ours, theirs = os.pipe()
    kept = os.dup(0)
    os.dup2(ours, 0)
    os.close(ours)

    def write() -> None:
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(text)

    try:
        threading.Thread(target=write).start()
        script = "import sys; sys.stdout.buffer.write(b'%d\\n' % len(sys.stdin.buffer.read()))"
        assert run(testbed, sys.executable, "-c", script, on=On()) == 0
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    lines = sorted(capfdbinary.readouterr().out.splitlines())
    assert lines == [b"n1: %d" % len(text), b"n2: 0"]


def test_much_output_comes_whole(testbed: Testbed) -> None:
    kept = os.dup(1)
    with subprocess.Popen(["wc", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        os.dup2(reader.stdin.fileno(), 1)
        reader.stdin.close()
        try:
            assert run(testbed, "head", "-c", str(MANY), "/dev/zero") == 0
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        assert int(reader.stdout.read()) == MANY


def test_a_reader_that_has_enough_ends_the_command(testbed: Testbed) -> None:
    kept = os.dup(1)
    with subprocess.Popen(
        ["head", "-c", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as head:
        assert head.stdin is not None
        os.dup2(head.stdin.fileno(), 1)
        head.stdin.close()
        try:
            assert run(testbed, "yes") == 128 + signal.SIGPIPE
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def test_names_of_nodes(testbed: Testbed, capfd: pytest.CaptureFixture[str]) -> None:
    script = "printf 'one\\ntwo'; echo three >&2"
    assert run(testbed, "sh", "-c", script, on=On()) == 0
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["n1: one", "n1: two", "n2: one", "n2: two"]
    assert sorted(err.splitlines()) == ["n1: three", "n2: three"]
    assert run(testbed, "sh", "-c", script, on=On(first=2), prefix=False) == 0
    assert sorted(capfd.readouterr().err.splitlines()) == ["three", "three"]


def test_the_worst_status_counts(testbed: Testbed) -> None:
    script = 'exit $((${#ROCELAB_EXEC} > 0 ? $(mkdir "${ROCELAB_EXEC%/*}/first" 2>&1 | wc -l) : 9))'
    try:
        assert run(testbed, "sh", "-c", script, on=On()) == 1
    finally:
        Path(os.environ["TMPDIR"], "first").rmdir()


def test_what_still_runs_is_ended(testbed: Testbed) -> None:
    assert run(testbed, "sh", "-c", "setsid sleep 1000 & exit 3") == 3


@pytest.mark.slow
def test_what_executes_itself_again_and_again_is_ended(testbed: Testbed, tmp_path: Path) -> None:
    """A process that replaces its program has no environment then: here, a third of the time."""
    program = tmp_path / "again"
    program.write_text('#!/bin/sh\nexec "$0"\n')
    program.chmod(0o755)
    # a process that survives keeps the streams open
    late = threading.Timer(300, program.unlink)
    late.start()
    try:
        for _ in range(10):
            script = f"for _ in $(seq 20); do setsid {program} & done; exit 3"
            assert run(testbed, "sh", "-c", script) == 3
        assert late.is_alive()
    finally:
        late.cancel()
        program.unlink(missing_ok=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_pass(
    testbed: Testbed, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command ends as it likes, and with its own status."""
    before = signal.getsignal(number)
    script = (
        f"trap 'echo caught; exit 9' {number.name[3:]}; echo waits; while :; do sleep 0.05; done"
    )
    _when_running(number)
    assert run(testbed, "sh", "-c", script) == 9
    assert signal.getsignal(number) == before


def _when_running(*numbers: int) -> None:
    """Send this process signals as soon as the command's shell has a child."""

    def send() -> None:
        wait_until("the command runs", _runs, seconds=30)
        for number in numbers:
            os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()


def _runs() -> bool:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            ours = f"ROCELAB_EXEC={os.environ['TMPDIR']}/".encode() in path.read_bytes()
            if ours and (path.parent / "cmdline").read_bytes().startswith(b"sleep\0"):
                return True
        except OSError:
            continue
    return False


def test_the_third_signal_ends_what_ignores_them(testbed: Testbed) -> None:
    _when_running(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    script = "trap '' INT TERM HUP; while :; do sleep 0.05; done"
    assert run(testbed, "sh", "-c", script) == 128 + signal.SIGKILL


def test_no_such_command(testbed: Testbed, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFoundError, match="no command nosuch on n1"):
        run(testbed, "nosuch")
    with pytest.raises(NotExecutableError, match="is not executable"):
        run(testbed, "/etc/passwd")
    with pytest.raises(NotExecutableError, match="is not executable"):
        run(testbed, "/etc")
    assert capfd.readouterr() == ("", "")


_ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00"


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (_ELF + b"\xb7\x00" + bytes(100), NotExecutableError, "was built for 64-bit Arm"),
        (_ELF + b"\xff\x00" + bytes(100), NotExecutableError, "was built for another processor"),
        (b"#!/no/such/python3 -u\n", NotFoundError, "needs '/no/such/python3'"),
        (b"#!no\x1b[2J\n", NotFoundError, r"needs 'no\\x1b\[2J'"),
    ],
)
def test_a_program_that_cannot_run(
    testbed: Testbed,
    tmp_path_factory: pytest.TempPathFactory,
    content: bytes,
    error: type[CommandError],
    says: str,
) -> None:
    program = tmp_path_factory.mktemp("own") / "program"
    program.write_bytes(content)
    program.chmod(0o755)
    with pytest.raises(error, match=says):
        run(testbed, "./program", files=Files(program.parent))


def test_a_program_for_another_library(
    testbed: Testbed, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path_factory.mktemp("own")
    text = Path("/bin/true").read_bytes()
    theirs = b"/lib64/ld-linux-x86-64.so.2\0"
    assert theirs in text
    ours = b"/lib/ld-musl-x86_64.so.1".ljust(len(theirs), b"\0")
    (folder / "program").write_bytes(text.replace(theirs, ours))
    (folder / "program").chmod(0o755)
    with pytest.raises(NotFoundError, match="ld-musl"):
        run(testbed, "./program", files=Files(folder))


def test_a_library_that_only_this_machine_has(
    testbed: Testbed, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied along; without a copy, the error names it."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "other").mkdir()
    (folder / "value.c").write_text("int value(void) { return 44; }")
    (folder / "main.c").write_text("int value(void); int main(void) { return value(); }")
    library = folder / "other/libvalue.so.1"
    build = ("gcc", "-shared", "-fPIC", "-Wl,-soname,libvalue.so.1", "-o")
    subprocess.run([*build, library, folder / "value.c"], check=True)
    link = ("gcc", "-o", folder / "program", folder / "main.c", library)
    subprocess.run(link, check=True)
    with pytest.raises(NotFoundError, match=r"lacks the library libvalue\.so\.1"):
        run(testbed, "./program", files=Files(folder))
    with monkeypatch.context() as there:
        there.setenv("LD_LIBRARY_PATH", str(library.parent))
        needed = libraries.of(folder / "program")
    assert needed == {"libvalue.so.1": library}
    monkeypatch.setattr(libraries, "of", lambda program: needed)
    assert run(testbed, "./program", files=Files(folder)) == 44


def test_a_node_whose_answer_is_no_folder(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node says goes into command lines."""
    odd = tmp_path / "a;b"
    odd.mkdir()
    with monkeypatch.context() as there:
        there.setenv("TMPDIR", str(odd))
        with pytest.raises(TestbedError, match="n1 made no folder for a command"):
            run(testbed, "true")
    wait_until("its guard is gone", lambda: not list(odd.iterdir()))
    odd.rmdir()


def test_a_builtin_of_the_shell_is_no_command(testbed: Testbed) -> None:
    with pytest.raises(NotFoundError):
        run(testbed, "exit", "3")


@pytest.mark.parametrize(
    ("said", "error", "names"),
    [
        (
            "./x: error while loading shared libraries: libfoo.so.1: cannot open shared object "
            "file: No such file or directory",
            NotFoundError,
            "lacks the library libfoo.so.1",
        ),
        (
            "./x: /lib/libc.so.6: version `GLIBC_2.99' not found (required by ./x)",
            NotExecutableError,
            "needs GLIBC_2.99",
        ),
    ],
)
def test_what_the_loader_says(
    testbed: Testbed, said: str, error: type[CommandError], names: str
) -> None:
    with pytest.raises(error, match=names):
        run(testbed, "sh", "-c", 'echo "$1" >&2; exit 127', "sh", said)


def test_a_command_line_that_is_too_long(testbed: Testbed) -> None:
    with pytest.raises(UsageError, match="too long"):
        run(testbed, "true", "x" * 200_000)


@pytest.mark.slow
def test_a_command_that_hangs(testbed: Testbed) -> None:
    with pytest.raises(CommandTimeoutError, match=r"did not end within 0\.5 s") as caught:
        run(testbed, "sh", "-c", "echo begun; sleep 1000; true", seconds=0.5)
    assert "n1 printed: begun" in caught.value.cause
    assert "sleep 1000" in caught.value.cause


_SERVER = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("waits", flush=True)
    server.accept()
sys.exit(int(sys.argv[2]))
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _serving(port: int, code: int = 0) -> tuple[str, ...]:
    return (sys.executable, "-c", _SERVER, str(port), str(code))


_CLIENT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()"


@pytest.mark.slow
@pytest.mark.parametrize("by", ["any", "tcp", "line", "delay"])
def test_the_client_waits_for_its_server(testbed: Testbed, by: Any) -> None:
    port = _free_port()
    ready = Ready(by, port=port, line="waits", seconds=0.8)
    server = ("sh", "-c", 'sleep 0.3; exec "$@"', "sh", *_serving(port))
    assert run(testbed, sys.executable, "-c", _CLIENT, str(port), server=server, ready=ready) == 0


@pytest.mark.slow
def test_a_server_that_fails_after_its_client(testbed: Testbed) -> None:
    port = _free_port()
    assert run(testbed, sys.executable, "-c", _CLIENT, str(port), server=_serving(port, 6)) == 6
    port = _free_port()
    client = f"{_CLIENT}; sys.exit(4)"
    assert run(testbed, sys.executable, "-c", client, str(port), server=_serving(port, 6)) == 4


@pytest.mark.slow
def test_a_server_that_goes_on_is_ended(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conduct, "_SERVER_SECONDS", 0.2)
    port = _free_port()
    assert run(testbed, "true", server=_serving(port)) == 0


def test_a_server_that_ends_before(testbed: Testbed) -> None:
    server = ("sh", "-c", "echo no device >&2; exit 3")
    with pytest.raises(CommandError, match="ended with 3 before it listened") as caught:
        run(testbed, "true", server=server)
    assert "no device" in caught.value.cause


def test_nothing_waits_for_a_server_that_ended(testbed: Testbed) -> None:
    dying = ("sh", "-c", "kill -SEGV $$")
    with pytest.raises(CommandError, match=r"ended with 139 \(SIGSEGV\) before it listened"):
        run(testbed, "true", server=dying)
    with pytest.raises(CommandError, match="ended with 3 before it ran for 1000 s"):
        run(testbed, "true", server=("sh", "-c", "exit 3"), ready=Ready("delay", seconds=1000))
    # this process would not end before the others do
    assert [each for each in threading.enumerate() if not each.daemon] == [threading.main_thread()]


@pytest.mark.slow
def test_a_server_that_does_not_listen(testbed: Testbed) -> None:
    with pytest.raises(CommandError, match="never listened on TCP port 9") as caught:
        run(testbed, "true", server=("sleep", "1000"), ready=Ready("tcp", port=9), seconds=0.5)
    assert "sleep 1000" in caught.value.cause


@pytest.mark.slow
def test_a_client_without_its_server(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conduct, "_WITHOUT_SERVER_SECONDS", 0.3)
    port = _free_port()
    client = f"{_CLIENT}; import time; time.sleep(1000)"
    with pytest.raises(CommandError, match="ended with 6, and its client did not end"):
        run(testbed, sys.executable, "-c", client, str(port), server=_serving(port, 6))


def test_what_a_program_needs_to_know(testbed: Testbed, capfd: pytest.CaptureFixture[str]) -> None:
    script = "echo $ROCELAB_ADDRESS $ROCELAB_PEER_ADDRESS $ROCELAB_NETDEV $ROCELAB_MTU $1"
    words = "<{peer}> {address} {netdev} {device} {other}"
    assert run(testbed, "sh", "-c", script, "sh", words) == 0
    # over TCP there is no device
    replaced = "<127.0.0.1> 127.0.0.1 lo {device} {other}"
    assert capfd.readouterr().out == f"127.0.0.1 127.0.0.1 lo 65536 {replaced}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tcp", "no colon"),
        ("tcp:0", "no number"),
        ("tcp:70000", "no number"),
        ("udp:5", "no number"),
    ],
)
def test_words_that_say_no_time(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Ready.parse(text)
    assert says in caught.value.cause


def test_words_that_say_when() -> None:
    assert Ready.parse("tcp:80") == Ready("tcp", port=80)
    assert Ready.parse("rdma_cm:7174") == Ready("rdma_cm", port=7174)
    assert Ready.parse("line:a:b") == Ready("line", line="a:b")
    assert Ready.parse("delay:0.5") == Ready("delay", seconds=0.5)


def test_words_that_say_where() -> None:
    nodes = ["n1", "n2", "n3"]
    for text, chosen, several in (
        ("n2", ["n2"], False),
        ("1", ["n1"], False),
        ("2", ["n1", "n2"], True),
        ("all", nodes, True),
    ):
        on = On.parse(text)
        assert (list(on.of(nodes)), on.several) == (chosen, several)
    assert (On.parse("n3").least, On.parse("all").least) == (3, 2)
    for text in ("", "0", "n0", "n1,n2", "every", "9999", "\u0661"):
        with pytest.raises(UsageError, match="names no nodes"):
            On.parse(text)


def test_how_many_nodes_a_command_needs() -> None:
    """One boots faster than two; nobody can know what a program that is alone would reach."""
    v1 = TRANSPORTS["rxe-v1"]
    for request, nodes in (
        (Request(("true",)), 1),
        (Request(("true",), on=On.parse("1")), 1),
        (Request(("true",), on=On.parse("n2")), 2),
        (Request(("true",), on=On.parse("all")), 2),
        (Request(("true",), on=On.parse("3")), 3),
        (Request(("ping", "{peer}")), 2),
        (Request(("sh", "-c", "ping $ROCELAB_PEER_ADDRESS")), 2),
        (Request(("true",), server=("true",)), 2),
        (Request(("true",), alone=True), 2),
        (Request(("true",), transport=v1), 2),
    ):
        assert request.nodes == nodes


def test_what_a_detached_command_prints_is_kept(
    testbed: Testbed,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output, "MAX_KEPT", 5)
    into = tmp_path.parent / f"{tmp_path.name}-kept"
    into.mkdir()
    script = "cat; printf 1234567; echo no >&2; sleep 0.2; exit 3"
    request = Request(("sh", "-c", script), transport=TRANSPORTS["tcp"])
    ended = conduct.run(request, testbed, ends=[End("127.0.0.1")], into=into, attached=False)
    assert ended.status == 3
    assert ended.wall_ns >= 2e8
    outputs = {path.name: path.read_text() for path in into.iterdir()}
    assert outputs == {"client.out": "12345", "client.err": "no\n"}
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def step(testbed: Testbed, tmp_path: Path) -> Callable[..., tuple[Completed, int]]:
    """Run a shell's command as a step of a cell."""
    into = tmp_path.parent / f"{tmp_path.name}-step"
    into.mkdir()
    rig = cast("Rig", SimpleNamespace(testbed=testbed, transport=TRANSPORTS["tcp"]))

    def run_step(
        script: str,
        *,
        timeout: int = 60,
        attached: Attachment | None = None,
        may_fail: bool = False,
    ) -> tuple[Completed, int]:
        here = End("127.0.0.1")
        words = ("sh", "-c", script, "sh", "{size}")
        job = Job(
            *(TESTS["command", "time"], 64, 10, 1, 14, 5001, here, here),
            command=CommandPlan(words, may_fail=may_fail),
        )
        return command_step.run(
            TOOLS["command"], job, rig, timeout=timeout, into=into, attached=attached
        )

    return run_step


@pytest.mark.slow
def test_a_command_as_a_step(
    step: Callable[..., tuple[Completed, int]], capfd: pytest.CaptureFixture[str]
) -> None:
    done, took = step("echo $1; exit 3", may_fail=True)
    assert (done.returncode, done.stdout) == (3, "64\n")
    assert took > 0
    with pytest.raises(CellError, match="ended with 3") as caught:
        step("echo why >&2; exit 3")
    assert "why" in caught.value.cause
    with pytest.raises(StallError, match="did not end within 1 s"):
        step("sleep 1000", timeout=1)
    assert capfd.readouterr() == ("", "")


def test_a_watched_command_is_the_users(
    step: Callable[..., tuple[Completed, int]], capfd: pytest.CaptureFixture[str]
) -> None:
    request = Request(("sh", "-c", "echo {size}; exit 4"), transport=TRANSPORTS["tcp"])
    attached = Attachment(request)
    done, _ = step("", attached=attached, may_fail=True)
    assert (done.returncode, done.stdout, attached.status) == (4, "{size}\n", 4)
    assert capfd.readouterr().out == "{size}\n"
    failing = Attachment(Request(("nosuch",), transport=TRANSPORTS["tcp"]))
    with pytest.raises(CellError):
        step("", attached=failing)
    assert isinstance(failing.error, NotFoundError)
    assert failing.status is None
