# SPDX-License-Identifier: GPL-2.0-or-later
"""A small TOML file costs little memory, no matter how deep its keys are."""

from __future__ import annotations

import tracemalloc

import pytest

from rocelab.errors import UsageError
from rocelab.strict import parse_toml


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 2000) + "=1",
        "[" + ".".join(["a"] * 2000) + "]",
        "x = {" + '."=".'.join(["a"] * 1000) + "=1}",
        "\n".join(f"k{n}." + ".".join(["a"] * 100) + "=1" for n in range(100)),
    ],
)
def test_deep_keys_are_refused(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="nested too deeply"):
            parse_toml(text, "x.toml", kind="plan")
        assert tracemalloc.get_traced_memory()[1] < 20 * len(text) + (1 << 20)
    finally:
        tracemalloc.stop()


def test_many_addresses_in_one_line_are_read() -> None:
    text = "hosts = [" + ", ".join(f'"10.44.0.{n}"' for n in range(128)) + "]"
    assert len(parse_toml(text, "x.toml", kind="inventory")["hosts"]) == 128
