# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on hosts say which host is which, where the inventory gives them no names."""

from __future__ import annotations

from pathlib import Path

import pytest

import fake_host
from command_line import rocelab


def test_a_host_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_host.install(tmp_path, monkeypatch)
    inventory = tmp_path / "hosts.toml"
    inventory.write_text(
        '[[host]]\nhost = "node1.example"\nnetdev = "eth1"\n'
        '[[host]]\nname = "beta"\nhost = "beta"\nnetdev = "eth1"\n'
    )
    done = rocelab("hosts", "status", "--inventory", str(inventory))
    assert "n1 is node1.example\n" in done.stderr
    assert "beta is" not in done.stderr
