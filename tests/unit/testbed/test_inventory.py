# SPDX-License-Identifier: GPL-2.0-or-later
"""Inventories are read strictly; values that a command line could misread are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import ExitCode, UsageError
from rocelab.testbed.ssh import inventory
from rocelab.testbed.ssh.inventory import Host, Uses


def test_optional_keys_default_to_ssh() -> None:
    hosts = inventory.from_dict({"host": [{"host": "node1.example", "netdev": "eth1"}]}, "i.toml")
    assert hosts == (Host("n1", "node1.example", "eth1"),)


def test_all_keys_are_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(
        '[[host]]\nname = "left"\nhost = "fe80::1%eth0"\nuser = "me"\nport = 2222\n'
        'netdev = "enp3s0f1.7"\nverbs = "mlx5_0"\nidentity = "~/.ssh/lab"\n'
        'known_hosts = "/etc/lab/known_hosts"\nroot = false\n'
        'path = ["/opt/mpi/bin"]\nmodules = ["osu/7.4"]\n'
        '[[host]]\nhost = "b"\nnetdev = "eth1"\n'
    )
    left, second = inventory.load(path)
    assert left == Host(
        *("left", "fe80::1%eth0", "enp3s0f1.7", "me", 2222, "mlx5_0"),
        *(Path.home() / ".ssh/lab", Path("/etc/lab/known_hosts")),
        root=False,
        path=("/opt/mpi/bin",),
        modules=("osu/7.4",),
    )
    assert second.name == "n2"


HOST = [{"host": "a", "netdev": "eth1"}]


def test_the_control_networks_are_for_all_hosts() -> None:
    values = {"control": ["192.0.2.0/25", "fd00:1::/64"], "host": HOST}
    (host,) = inventory.from_dict(values, "i.toml")
    assert host.control == ("192.0.2.0/25", "fd00:1::/64")


def test_a_host_says_what_each_transport_uses() -> None:
    uses = {"ib": {"device": "mlx5_1", "port": 2, "netdev": "ib0"}, "rxe": {"netdev": "eth2"}}
    (host,) = inventory.from_dict({"host": [{**HOST[0], "transport": uses}]}, "i.toml")
    assert host.transports == {"ib": Uses("ib0", "mlx5_1", 2), "rxe": Uses("eth2")}


@pytest.mark.parametrize(
    ("uses", "where"),
    [
        ({"rxe-v1": {}}, "transport.'rxe-v1'"),
        ({"ib": {"device": "../x"}}, "transport.ib.device"),
        ({"ib": {"port": 0}}, "transport.ib.port"),
        ({"ib": {"netdev": "a b"}}, "transport.ib.netdev"),
        ({"ib": {"gid": 3}}, "transport.ib.gid"),
        ({"ib": 3}, "transport.ib"),
    ],
)
def test_what_a_transport_cannot_use_is_refused(uses: object, where: str) -> None:
    with pytest.raises(UsageError) as caught:
        inventory.from_dict({"host": [{**HOST[0], "transport": uses}]}, "i.toml")
    assert f"host[1].{where}" in caught.value.what


@pytest.mark.parametrize("control", [["192.0.2.7/24"], ["eth0"], ["; reboot"], "192.0.2.0/24", [7]])
def test_a_control_network_is_a_list_of_networks(control: object) -> None:
    with pytest.raises(UsageError, match="control"):
        inventory.from_dict({"control": control, "host": HOST}, "i.toml")


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
def test_unsafe_or_unknown_values_are_refused(key: str, value: object) -> None:
    host = {"host": "a", "netdev": "eth1", key: value}
    with pytest.raises(UsageError) as caught:
        inventory.from_dict({"host": [host]}, "i.toml")
    assert f"i.toml: host[1].{key}" in caught.value.what
    assert caught.value.exit_code is ExitCode.USAGE


@given(st.text(max_size=40))
def test_a_host_is_never_an_option_or_several_words(text: str) -> None:
    try:
        (host,) = inventory.from_dict({"host": [{"host": text, "netdev": "e"}]}, "i.toml")
    except UsageError:
        return
    assert host.host.isascii()
    assert host.host[0].isalnum()
    assert not set(host.host) & set(" \t\n'\"$`\\;&|<>/(){}*?~")


def test_a_duplicate_name_is_refused() -> None:
    two = [{"host": "a", "netdev": "e", "name": "n2"}, {"host": "b", "netdev": "e"}]
    with pytest.raises(UsageError, match="'n2' appears twice"):
        inventory.from_dict({"host": two}, "i.toml")


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read inventory"):
        inventory.load(tmp_path / "absent.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[[host")
    with pytest.raises(UsageError, match="not valid TOML"):
        inventory.load(bad)
