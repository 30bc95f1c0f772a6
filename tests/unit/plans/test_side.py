# SPDX-License-Identifier: GPL-2.0-or-later
"""Sides of an A/B comparison: every kind, joined ones, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocelab.errors import UsageError
from rocelab.plans import side


def test_all_at_once() -> None:
    text = (
        "delay+patches:/a+b/c+tree:/src/linux@v6.12~2+parameter:delay_ns=100"
        "+sysctl:net.core.rmem_max=5+mtu:1500+line:6.1"
    )
    parsed = side.parse(text)
    assert parsed == side.Side(
        text,
        variant="delay",
        patches=(Path("/a+b/c"),),
        tree=Path("/src/linux"),
        commit="v6.12~2",
        parameters=(("delay_ns", "100"),),
        sysctls=(("net.core.rmem_max", "5"),),
        mtu=1500,
        line="6.1",
    )
    assert parsed.is_built


def test_a_path_is_patches() -> None:
    assert side.parse("./mine").patches == (Path("./mine"),)
    assert side.parse("instrumented").patches == ()
    assert not side.parse("events+mtu:2048").is_built


def test_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell expands `~` only where a word begins with it."""
    monkeypatch.setenv("HOME", "/home/me")
    parsed = side.parse("line:7.x+tree:~/linux@master+patches:~/mine")
    assert parsed.tree == Path("/home/me/linux")
    assert parsed.patches == (Path("/home/me/mine"),)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("stock", "no events"),
        ("nonsense", "no variant, no path and no setting"),
        ("mtu:", "nothing follows"),
        ("mtu:20", "from 1280 to 9000"),
        ("mtu:many", "from 1280 to 9000"),
        ("line:5.4", "6.1"),
        ("parameter:x", "NAME=VALUE"),
        ("sysctl:-w=1", "NAME=VALUE"),
        ("tree:/src", "REPOSITORY@COMMIT"),
        ("tree:/src@--output=x", "REPOSITORY@COMMIT"),
        ("tree:~nobody-of-that-name/linux@main", "home"),
    ],
)
def test_what_is_none(text: str, cause: str) -> None:
    with pytest.raises(UsageError) as caught:
        side.parse(text)
    assert cause in caught.value.cause
    assert caught.value.action
