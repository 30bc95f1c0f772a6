# SPDX-License-Identifier: GPL-2.0-or-later
"""A change of the driver is built on a host, which is a node image in a sandbox, without a VM."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import injected
from injected import costlier
from requirements import missing, need_program
from rocelab.errors import MissingError, UsageError
from rocelab.testbed import artifacts
from rocelab.testbed.hosts import changed_module, host_build, loaded_driver
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local_process import ByCommandLine
from vmlab import LINE

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class InImage(ByCommandLine):
    """Run commands in a node's image, whose kernel seems to run (…command_node.Connection)."""

    root: Path
    tmp: Path
    uname: Path

    def command(self, argv: Sequence[str]) -> list[str]:
        return [
            str(artifacts.source_dir() / "tools/setup/bwrap-anywhere"),
            *("--ro-bind", str(self.root), "/", "--dev", "/dev", "--proc", "/proc"),
            *("--bind", str(self.tmp), "/tmp", "--tmpfs", "/usr/local/sbin"),
            *("--ro-bind", str(self.uname), "/usr/local/sbin/uname"),
            *("--unshare-net", "--unshare-pid", "--die-with-parent", "--clearenv"),
            *("--setenv", "PATH", "/usr/sbin:/usr/bin", "--", *argv),
        ]

    def as_root(self) -> InImage:
        return self


@pytest.fixture
def host(tmp_path: Path) -> CommandNode:
    """A host that has what the driver's build needs."""
    need_program("bwrap")
    try:
        image, driver = artifacts.image(LINE), artifacts.driver(LINE)
    except MissingError as error:
        missing(error.action)
    uname = tmp_path / "uname"
    uname.write_text(f"#!/bin/sh\necho {driver.release}\n")
    uname.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    there = InImage(image / "root", tmp_path / "tmp", uname)
    return CommandNode("alpha", DataLink("", "", "", 0), there)


def repository(folder: Path) -> Path:
    """A git repository of the kernel's own driver."""
    pristine = artifacts.driver(LINE).module.parent / "pristine" / injected.FOLDER
    shutil.copytree(pristine, folder / injected.FOLDER)
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "a commit"]):
        subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)
    return folder


def test_a_change_is_built_for_the_hosts_kernel(host: CommandNode, tmp_path: Path) -> None:
    """With a patch whose name would be two words of make's; one that does not apply is refused."""
    mine = injected.write(tmp_path / "mine", [costlier(("tx", "icrc"), 100)])
    (patch,) = mine.iterdir()
    odd = patch.rename(mine / "0001-a b;$(reboot).patch")
    with host_build.work_folder(host) as work:
        host_build.check_tools(host, host_build.MODULE_TOOLS)
        host_build.send_sources(host, work)
        built = changed_module.build(
            *(host, work, f"{work}/change0"), variant="instrumented", patches=[mine]
        )
        own = f"{work}/own.ko"
        host.put(artifacts.driver(LINE).module, own)
        magic, other = (
            host.run(["modinfo", "-F", "vermagic", module]).stdout for module in (own, built)
        )
        assert magic.startswith(artifacts.driver(LINE).release)
        assert magic == other
        source, another = (loaded_driver.source_of(host, module) for module in (own, built))
        assert source
        assert source != another
        odd.write_text(odd.read_text().replace("icrc", "nothing"))
        with pytest.raises(UsageError, match="cannot be built with this change on alpha") as caught:
            changed_module.build(
                *(host, work, f"{work}/change1"), variant="instrumented", patches=[mine]
            )
        tree = repository(tmp_path / "linux")
        of_tree = changed_module.build(
            *(host, work, f"{work}/change2"), variant="instrumented", tree=tree, commit="main"
        )
        assert loaded_driver.source_of(host, of_tree) == source
    assert "0001-a_b___reboot_.patch" in caught.value.cause
    assert not list((tmp_path / "tmp").iterdir())
