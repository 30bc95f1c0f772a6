# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in a site's own folders and modules, with the real Environment Modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import fake_host
from requirements import missing
from rocelab.errors import TestbedError, UsageError
from rocelab.testbed.node.ssh_node import SshTarget
from rocelab.testbed.ssh import inventory
from rocelab.testbed.ssh.connect import connect
from rocelab.testbed.ssh.inventory import Host

pytestmark = pytest.mark.slow

_MODULE = """#%%Module
prepend-path PATH {%s/bin}
prepend-path LD_LIBRARY_PATH {%s/lib}
setenv SITE_TUNED {a b; reboot $(id)}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host on which the module site/1.0 has a program `tool`; its folder of programs."""
    if not Path("/etc/profile.d/modules.sh").exists():
        missing("environment-modules is not installed")
    fake_host.install(tmp_path, monkeypatch)
    programs = tmp_path / "site 1.0/bin"
    programs.mkdir(parents=True)
    (programs / "tool").write_text("#!/bin/sh\necho of the site\n")
    (programs / "tool").chmod(0o755)
    module = tmp_path / "modules/site/1.0"
    module.parent.mkdir(parents=True)
    module.write_text(_MODULE % (programs.parent, programs.parent))
    monkeypatch.setenv("MODULEPATH", str(module.parents[1]))
    return programs


def test_commands_find_what_a_module_provides(site: Path) -> None:
    with connect([Host("n1", "node1", "eth1", modules=("site/1.0",))]) as (node,):
        assert node.run(["tool"]).stdout == "of the site\n"
        assert node.start(["tool"]).wait(timeout=30).stdout == "of the site\n"
        said = node.run(["printenv", "SITE_TUNED"]).stdout
        assert said == "a b; reboot $(id)\n"
        assert node.run(["printenv", "LD_LIBRARY_PATH"]).stdout.startswith(f"{site.parent}/lib")
        names = {each.partition("=")[0] for each in node.target.environment}
        assert names == {"PATH", "LD_LIBRARY_PATH", "SITE_TUNED"}


def test_the_inventorys_folders_come_first(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "tool").symlink_to("/bin/true")
    host = Host("n1", "node1", "eth1", path=(str(other),), modules=("site/1.0",))
    with connect([host]) as (node,):
        assert node.run(["tool"]).stdout == ""
        assert node.run(["id", "-u"]).stdout.strip().isdecimal()
    with connect([Host("n1", "node1", "eth1", path=(str(site),))]) as (node,):
        assert node.run(["tool"]).stdout == "of the site\n"


def test_a_module_that_is_missing_is_named(site: Path) -> None:
    with (
        pytest.raises(TestbedError, match="cannot load nosuch/2 on n1") as caught,
        connect([Host("n1", "node1", "eth1", modules=("nosuch/2",))]),
    ):
        pass
    assert "Unable to locate a modulefile for 'nosuch/2'" in caught.value.cause


def test_a_host_without_modules_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_host.install(tmp_path, monkeypatch, {"bash": 'shift; exec sh -c "$@"'})
    with (
        pytest.raises(TestbedError) as caught,
        connect([Host("n1", "node1", "eth1", modules=("site/1.0",))]),
    ):
        pass
    assert caught.value.cause == "its login shell knows no command module"


def test_roots_commands_keep_their_environment() -> None:
    target = SshTarget("node1", Path("/x"), is_root=False, environment=("PATH=/opt/x y:/bin",))
    assert target.command(["mpirun"])[-1] == "env 'PATH=/opt/x y:/bin' mpirun"
    assert target.as_root().command(["rmmod", "x"])[-1] == "sudo -n -- rmmod x"


@pytest.mark.parametrize(
    ("key", "value"),
    [("path", "bin"), ("path", "/a:/b"), ("path", "/a\nb"), ("modules", "-x"), ("modules", "a;b")],
)
def test_values_that_are_no_folder_and_no_module_are_refused(key: str, value: str) -> None:
    with pytest.raises(UsageError, match=key):
        inventory.from_dict({"host": [{"host": "a", "netdev": "eth1", key: [value]}]}, "hosts.toml")
