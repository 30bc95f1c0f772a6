# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON of strangers: what is no object, or beyond a limit, is refused by its own words."""

from __future__ import annotations

import pytest

from rocelab import json_text, limits

SMALL = 64
"""Bytes and values, in place of millions."""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('"' + "x" * SMALL + '"', "it is too large"),
        ("[" + "1," * (SMALL // 4) + "1]", "it has too many values"),
        ("[1]", "it is not a JSON object"),
        ("7", "it is not a JSON object"),
    ],
)
def test_what_is_refused(text: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RAW_BYTES", SMALL)
    monkeypatch.setattr(limits, "MAX_JSON_VALUES", SMALL // 4)
    for content in (text, text.encode()):
        with pytest.raises(ValueError, match=why):
            json_text.parse(content)


def test_depth() -> None:
    """Also where Python itself would stop."""
    for depth in (limits.MAX_JSON_DEPTH + 1, 500_000):
        with pytest.raises(ValueError, match="it is nested too deeply"):
            json_text.parse('{"a":' * depth + "1" + "}" * depth)


def test_at_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"a": [1, 2]}'
    monkeypatch.setattr(limits, "MAX_RAW_BYTES", len(text))
    monkeypatch.setattr(limits, "MAX_JSON_VALUES", 3)
    assert json_text.parse(text) == {"a": [1, 2]}
