# SPDX-License-Identifier: GPL-2.0-or-later
"""The extcap's protocol and its ways to stop, with an inventory and fake programs."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus import files
from extcap_live import EXTCAP, Live, ask, count, here
from polling import wait_until
from rocelab.errors import TestbedError
from rocelab.testbed.ssh.inventory import Host
from rocelab.wireshark.extcap import interfaces, stream

pytestmark = pytest.mark.slow

HOSTS = """
[[host]]
name = "alpha"
host = "alpha.example"
netdev = "eth1"
verbs = "mlx5_0"
user = "lab"
port = 2222

[[host]]
name = "beta"
host = "10.0.0.9"
netdev = "eth1"
"""
# records its arguments, writes the start of a file, and runs until it gets SIGTERM
_RXEDUMP = """#!/bin/sh
echo "$@" > "$LAB/argv"
trap 'echo TERM > "$LAB/ended"; sleep "${TAIL_S:-0}"; printf "%s" tail; exit 0' TERM
[ -z "$FAIL" ] || { echo "rxedump: the ring is broken" >&2; exit 3; }
cat "$LAB/begin"
echo "rxedump: ready" >&2
while :; do sleep 0.05; done
"""
# runs the remote command here, in a shell like the remote one
_SSH = """#!/bin/sh
echo "$@" > "$LAB/ssh"
[ -z "$REFUSE" ] || { echo "Permission denied (publickey)." >&2; exit 255; }
for last; do :; done
exec sh -c "$last"
"""
_SUDO = '#!/bin/sh\nshift\nexec "$@"\n'


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the fake programs first in PATH and write an inventory of two hosts."""
    (tmp_path / "bin").mkdir()
    for name, text in (("rxedump", _RXEDUMP), ("ssh", _SSH), ("sudo", _SUDO)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    inventory = tmp_path / "config/rocelab/hosts.toml"
    inventory.parent.mkdir(parents=True)
    inventory.write_text(HOSTS)
    (tmp_path / "begin").write_bytes(
        files.section() + files.interface() + files.packet_block(1, b"\0" * 60)
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("LAB", str(tmp_path))
    return tmp_path


def test_listing_names_hosts_without_connecting(lab: Path) -> None:
    answer = ask("--extcap-interfaces", "--extcap-version=4.4")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("extcap {version=")
    # rxedump does not see alpha's adapter
    assert (
        "interface {value=rocelab-host-alpha}{display=Soft RoCE devices on alpha" in answer.stdout
    )
    assert "mlx5_0" not in answer.stdout
    assert "{value=rocelab-host-beta}" in answer.stdout
    assert not (lab / "ssh").exists()


def test_devices_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only rxe devices are listed: they have a parent interface, hardware has none."""
    for name, parent in (("rxe0", True), ("mlx5_0", False)):
        (tmp_path / name).mkdir()
        if parent:
            (tmp_path / name / "parent").write_text("eth0\n")
    monkeypatch.setattr(interfaces, "_DEVICES", tmp_path)
    local = [interface for interface in interfaces.all_interfaces() if interface.ssh is None]
    assert [(interface.value, interface.device) for interface in local] == [
        ("rocelab-rxe0", "rxe0")
    ]


def test_a_broken_inventory_hides_no_other_interface(lab: Path) -> None:
    (lab / "config/rocelab/hosts.toml").write_text('[[host]]\nname = "$(reboot)"\n')
    answer = ask("--extcap-interfaces")
    assert answer.returncode == 0
    assert "extcap {version=" in answer.stdout
    assert "hosts.toml" in answer.stderr


def test_an_unreadable_testbed_hides_no_other(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be going down, or belong to another version."""

    class Up:
        """A state folder whose supervisor lives."""

        def alive(self) -> bool:
            return True

    broken, whole = Up(), Up()

    def of(state: object) -> Iterator[interfaces.Interface]:
        if state is broken:
            raise TestbedError("testbed one cannot be read")
        yield interfaces.Interface("rocelab-two-n1-rxe0", "Soft RoCE", "rxe0", "n1", None)

    monkeypatch.setattr(interfaces.State, "all", lambda: [broken, whole])
    monkeypatch.setattr(interfaces, "_testbed", of)
    values = [interface.value for interface in interfaces.all_interfaces()]
    assert "rocelab-two-n1-rxe0" in values
    assert "rocelab-host-alpha" in values
    assert "testbed one cannot be read" in capsys.readouterr().err


def test_link_type_and_options(lab: Path) -> None:
    answer = ask("--extcap-interface=rocelab-host-alpha", "--extcap-dlts")
    assert answer.stdout == "dlt {number=1}{name=EN10MB}{display=Ethernet}\n"
    alpha = ask("--extcap-interface=rocelab-host-alpha", "--extcap-config").stdout
    beta = ask("--extcap-interface=rocelab-host-beta", "--extcap-config").stdout
    assert "{call=--device}" in alpha
    assert "{call=--device}" in beta
    for name in ("direction", "qpn", "opcode", "snapshot-length", "sample"):
        assert f"{{call=--{name}}}" in alpha
    for line in alpha.splitlines():
        assert line.count("{") == line.count("}")


def test_a_capture_through_ssh(lab: Path) -> None:
    words = ["--device", "rxe0", "--direction", "tx", "--qpn", "0x11", "--opcode", "RDMA_WRITE",
             "--snapshot-length", "128", "--sample", "4"]  # fmt: skip
    live = Live(lab, "rocelab-host-alpha", *words)
    wait_until("a packet", lambda: live.size and count(live.path) == 1)
    status, said = live.end()
    assert (status, said) == (0, "")
    assert (lab / "ended").exists(), "rxedump got SIGTERM and could write its last block"
    assert live.path.read_bytes().endswith(b"tail")
    assert (lab / "argv").read_text().split() == [
        "--write", "-", "--node", "alpha", "--device", "rxe0", "--direction", "tx", "--qpn", "0x11",
        "--opcode", "RDMA_WRITE", "--snapshot-length", "128", "--sample", "4",
    ]  # fmt: skip
    told = (lab / "ssh").read_text()
    assert told.startswith("-l lab -p 2222 ")
    assert "BatchMode=yes" in told
    assert "-- alpha.example " in told
    assert not here(str(lab))


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "closed", "early"])
def test_every_stop_ends_rxedump(how: str, lab: Path) -> None:
    live = Live(lab, "rocelab-host-beta")
    if how != "early":
        wait_until("it has begun", lambda: live.size)
    if how == "closed":
        live.close()
    status, _ = live.end(
        None if how == "closed" else signal.SIGTERM if how == "early" else signal.Signals[how]
    )
    # before Python installs its handler, the signal itself may kill it
    expected = {"SIGKILL": {-signal.SIGKILL}, "early": {0, -signal.SIGTERM}}
    assert status in expected.get(how, {0})
    wait_until("all its processes have ended", lambda: not running(lab))


# as the real one: what it has not passed on when it is killed is lost
_RELAYING_SSH = """#!/bin/sh
for last; do :; done
mkfifo "$LAB/relay"
exec 3<&0
sh -c "$last" <&3 >"$LAB/relay" &
exec cat "$LAB/relay"
"""
_NO_PATIENCE = """
import sys
from rocelab.wireshark.extcap import main, stream
stream._STOP_S = 0.1
sys.exit(main(sys.argv[1:]))
"""


def test_a_slow_end_is_read_to_its_last_byte(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a stop, rxedump may take as long as Wireshark continues to read."""
    monkeypatch.setattr(Live, "extcap", lab / "extcap.py")
    (lab / "extcap.py").write_text(_NO_PATIENCE)
    (lab / "bin/ssh").write_text(_RELAYING_SSH)
    live = Live(lab, "rocelab-host-beta", TAIL_S="0.5")
    wait_until("a packet", lambda: live.size and count(live.path) == 1)
    assert live.end() == (0, "")
    assert live.path.read_bytes().endswith(b"tail")


def running(lab: Path) -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"LAB={lab}\0".encode() in path.read_bytes():
                line = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if "rxedump" in line and "pytest" not in line:
                    lines.append(line)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return lines


@pytest.mark.parametrize(
    ("environment", "words", "message"),
    [
        ({"FAIL": "1"}, [], "the ring is broken"),
        ({"REFUSE": "1"}, [], "does not answer\ncause: Permission denied"),
        ({}, ["--qpn", "seventeen"], "Queue pair: 'seventeen' cannot be used"),
        ({}, ["--opcode", "x;reboot"], "cannot be used"),
        ({}, ["--device=-x"], "cannot be used"),
        ({}, ["--device", "$(reboot)"], "cannot be used"),
        ({}, ["--extcap-capture-filter", "udp"], "has no capture filters"),
    ],
)
def test_errors_reach_wiresharks_dialog(
    environment: dict[str, str], words: list[str], message: str, lab: Path
) -> None:
    live = Live(lab, "rocelab-host-beta", *words, **environment)
    status, said = live.end(None)
    assert status not in {0, 70}
    assert message in said
    assert "Traceback" not in said


def test_a_missing_rxedump_is_reported(lab: Path) -> None:
    (lab / "bin/rxedump").unlink()
    live = Live(lab, "rocelab-host-beta", PATH=f"{lab}/bin:/usr/bin:/bin")
    status, said = live.end(None)
    assert status == 3
    assert "rxedump is not installed" in said
    assert "make -C ebpf install" in said


def test_an_unknown_interface_is_refused(lab: Path) -> None:
    answer = ask("--extcap-interface=rocelab-host-gamma", "--extcap-config")
    assert answer.returncode == 2
    assert "there is no interface 'rocelab-host-gamma'" in answer.stderr


def test_a_pipe_that_is_gone(lab: Path) -> None:
    """Wireshark has given up before the capture began, and removed its pipe."""
    fifo = lab / "gone"
    answer = ask("--capture", "--extcap-interface=rocelab-host-beta", f"--fifo={fifo}")
    assert answer.returncode == 2
    assert answer.stderr.splitlines() == [
        f"cannot write to Wireshark's pipe {fifo}: No such file or directory",
        "cause: it does not exist, or a folder on the way to it",
        "Start the capture again: Wireshark makes a new pipe.",
    ]


def test_remote_arguments_are_quoted() -> None:
    """The remote shell gets one string, in which every argument is quoted."""
    host = Host(name="a", host="h", netdev="e")
    interface = interfaces.Interface("v", "t", "rxe0", host.name, interfaces._ssh(host))
    command = stream.command(interface, ["rxedump", "--node", "a b;c"])
    assert command[:1] == ["ssh"]
    assert shlex.split(command[-1])[-3:] == ["rxedump", "--node", "a b;c"]
    assert command[-3:-1] == ["--", "h"]


def test_a_python_without_rocelab_is_reported(tmp_path: Path) -> None:
    import subprocess

    done = subprocess.run(
        ["/usr/bin/python3", "-I", str(EXTCAP), "--extcap-interfaces"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 3
    assert "rocelab wireshark install" in done.stderr
