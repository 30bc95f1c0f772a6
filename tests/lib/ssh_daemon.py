# SPDX-License-Identifier: GPL-2.0-or-later
"""A real sshd(8) on the loopback, behind which are hosts that lie, flood or dawdle.

A host is a key: sshd runs `hostile_shell.py KIND` instead of what its client asks for.
"""

from __future__ import annotations

import getpass
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from polling import wait_until
from requirements import missing

_PROGRAM = "/usr/sbin/sshd"
_SETTINGS = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile {folder}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
"""


@contextmanager
def running(folder: Path, kinds: Sequence[str]) -> Iterator[Path]:
    """Serve a host of each kind; yield their inventory, in which a host is named as its kind."""
    if not Path(_PROGRAM).exists():
        missing("openssh-server is not installed")
    Path("/run/sshd").mkdir(exist_ok=True)  # its empty folder for those without rights
    shell = Path(__file__).with_name("hostile_shell.py")
    allowed = []
    for name in ("host", *kinds):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(make, check=True)
        if name != "host":
            key = (folder / f"{name}.pub").read_text()
            allowed.append(f'command="{sys.executable} {shell} {name}" {key}')
    (folder / "authorized").write_text("".join(allowed))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (folder / "config").write_text(_SETTINGS.format(port=port, folder=folder))
    known = folder / "known"
    known.write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    inventory = folder / "hosts.toml"
    inventory.write_text(
        "".join(
            f'[[host]]\nname = "{kind}"\nhost = "127.0.0.1"\nport = {port}\n'
            f'user = "{getpass.getuser()}"\nnetdev = "lo"\n'
            f'identity = "{folder / kind}"\nknown_hosts = "{known}"\n'
            for kind in kinds
        )
    )
    log = folder / "log"
    with log.open("wb") as errors, subprocess.Popen(
        [_PROGRAM, "-D", "-e", "-f", str(folder / "config")], stderr=errors
    ) as process:  # fmt: skip
        try:
            wait_until("sshd listens", lambda: b"listening" in log.read_bytes(), seconds=60)
            yield inventory
        finally:
            process.terminate()
