# SPDX-License-Identifier: GPL-2.0-or-later
"""Inventories: strict reading, and nothing in them that a command line could misread."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import ExitCode, UsageError
from rocelab.provider.ssh import inventory
from rocelab.provider.ssh.inventory import Host


def test_what_is_absent_is_left_to_ssh() -> None:
    hosts = inventory.from_dict({"host": [{"host": "node1.example", "netdev": "eth1"}]}, "i.toml")
    assert hosts == (Host("n1", "node1.example", "eth1"),)


def test_everything_may_be_said(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(
        '[[host]]\nname = "left"\nhost = "fe80::1%eth0"\nuser = "me"\nport = 2222\n'
        'netdev = "enp3s0f1.7"\nverbs = "mlx5_0"\nidentity = "~/.ssh/lab"\n'
        'known_hosts = "/etc/lab/known_hosts"\n'
        '[[host]]\nhost = "b"\nnetdev = "eth1"\n'
    )
    left, second = inventory.load(path)
    assert left == Host(
        *("left", "fe80::1%eth0", "enp3s0f1.7", "me", 2222, "mlx5_0"),
        *(Path.home() / ".ssh/lab", Path("/etc/lab/known_hosts")),
    )
    assert second.name == "n2"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("host", "-oProxyCommand=touch /tmp/x"),
        ("host", "a b"),
        ("host", "a\nb"),
        ("host", "$(reboot)"),
        ("host", "[b]"),
        ("user", "-l"),
        ("user", "root;reboot"),
        ("port", 0),
        ("port", 65536),
        ("port", True),
        ("netdev", "../../etc"),
        ("netdev", "a" * 16),
        ("netdev", ""),
        ("verbs", "mlx5/0"),
        ("verbs", ".."),
        ("name", "../n1"),
        ("name", "N1"),
        ("identity", "relative/key"),
        ("identity", "/a\nb"),
        ("password", "secret"),
    ],
)
def test_what_a_command_could_misread_is_refused(key: str, value: object) -> None:
    host = {"host": "a", "netdev": "eth1", key: value}
    with pytest.raises(UsageError) as caught:
        inventory.from_dict({"host": [host]}, "i.toml")
    assert f"i.toml: host[1].{key}" in caught.value.what
    assert caught.value.exit_code is ExitCode.USAGE


@given(st.text(max_size=40))
def test_no_host_is_an_option_or_more_than_a_word(text: str) -> None:
    try:
        (host,) = inventory.from_dict({"host": [{"host": text, "netdev": "e"}]}, "i.toml")
    except UsageError:
        return
    assert host.host.isascii()
    assert host.host[0].isalnum()
    assert not set(host.host) & set(" \t\n'\"$`\\;&|<>/(){}*?~")


def test_two_hosts_have_two_names() -> None:
    two = [{"host": "a", "netdev": "e", "name": "n2"}, {"host": "b", "netdev": "e"}]
    with pytest.raises(UsageError, match="'n2' is there twice"):
        inventory.from_dict({"host": two}, "i.toml")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read inventory"):
        inventory.load(tmp_path / "absent.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[[host")
    with pytest.raises(UsageError, match="not valid TOML"):
        inventory.load(bad)
