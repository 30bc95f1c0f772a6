# SPDX-License-Identifier: GPL-2.0-or-later
"""The Debian packages: built in a fresh Debian 13, installed in another."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from requirements import need_program

CHECKOUT = Path(__file__).resolve().parents[3]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PACKAGES = ("rocelab", "rocelab-probes", "rocelab-dkms")


def test_the_version_is_rocelabs() -> None:
    project = tomllib.loads((CHECKOUT / "tools/rocelab/pyproject.toml").read_text())["project"]
    begin = (CHECKOUT / "debian/changelog").read_text().partition("\n")[0]
    assert begin.startswith(f"rocelab ({project['version']}) ")


def in_debian(include: str, *hooks: str) -> str:
    """Make a Debian 13, run the hooks, and return everything that was printed."""
    command = ["mmdebstrap", "--quiet", "--variant=buildd", f"--include={include}"]
    if CERTIFICATES.exists():
        # a registry may be reached through a proxy of this machine
        command.append(f"--customize-hook=copy-in {CERTIFICATES} {CERTIFICATES.parent}")
    command += [f"--customize-hook={hook}" for hook in hooks]
    done = subprocess.run(
        [*command, "trixie", "/dev/null"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The packages of the last commit."""
    need_program("mmdebstrap")
    folder = tmp_path_factory.mktemp("packages")
    source = folder / "rocelab"
    subprocess.run(["git", "clone", "-q", CHECKOUT, source], check=True)
    control = (CHECKOUT / "debian/control").read_text()
    fields = re.search(r"Build-Depends: (.*?)\n(?! )", control, re.DOTALL)
    assert fields
    needed = [
        name.split()[0] for name in fields[1].replace("debhelper-compat", "debhelper").split(",")
    ]
    in_debian(
        ",".join(["ca-certificates", *needed]),
        f'copy-in "{source}" /tmp',
        'chroot "$1" sh -c "cd /tmp/rocelab && HOME=/root dpkg-buildpackage -b -us -uc"',
        f'cd "$1/tmp" && cp *.deb "{folder}"',
    )
    return sorted(folder.glob("*.deb"))


@pytest.mark.long
def test_packages_install_and_work(packages: list[Path]) -> None:
    """Also the driver: DKMS builds it for the kernel whose headers are there."""
    names = {path.name.partition("_")[0] for path in packages}
    assert set(PACKAGES) <= names <= {*PACKAGES, *(f"{name}-dbgsym" for name in PACKAGES)}
    wanted = [path for path in packages if "-dbgsym_" not in path.name]
    sample = CHECKOUT / "captures/rc-v2-ipv4.pcap"
    copies = [f'copy-in "{path}" /tmp' for path in (*wanted, sample)]
    checks = (
        f"rocelab analyze /tmp/{sample.name}",
        "rxestat --version && rxedump --version && rxecpu --version && rxetop --version",
        "modinfo -F version /lib/modules/*/updates/dkms/rdma_rxe.ko*",
        "ls /usr/share/man/man1/rocelab.1.gz /usr/share/man/man8/rxestat.8.gz",
        "ls /usr/lib/*/wireshark/extcap/rocelab",
    )
    printed = in_debian(
        "ca-certificates,linux-headers-amd64",
        *copies,
        'chroot "$1" sh -c "apt-get -y --no-install-recommends install /tmp/*.deb"',
        *(f"chroot \"$1\" sh -c '{check}'" for check in checks),
        'chroot "$1" apt-get -y purge rocelab rocelab-probes rocelab-dkms',
        'test -z "$(find "$1/usr" "$1/etc" "$1/lib/modules" -name "*rocelab*" -print)"',
    )
    assert "10.0.0.2" in printed
    assert "rocelab" in printed
