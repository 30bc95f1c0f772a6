# SPDX-License-Identifier: GPL-2.0-or-later
"""What is wrong with a TOML file is an error with its own likely cause."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rocelab.errors import UsageError
from rocelab.strict import Table

Read = Callable[[Table], object]


@pytest.mark.parametrize(
    ("values", "read", "what", "cause"),
    [
        ({"sise": 1}, lambda table: (table.has("size"), table.done()), "did you mean", "a typo"),
        ({"a": "x"}, lambda table: table.choice("a", ("y",)), "unknown value", "a typo"),
        ({}, lambda table: table.text("a"), "is missing", "incomplete"),
        ({"a": []}, lambda table: table.integers("a", low=0, high=9), "is empty", "incomplete"),
        (
            {"a": "1"},
            lambda table: table.integer("a", low=0, high=9),
            "whole number",
            "another type",
        ),
        ({"a": 10}, lambda table: table.integer("a", low=0, high=9), "out of range", "a limit"),
        (
            {"a": [1, 1]},
            lambda table: table.integers("a", low=0, high=9),
            "twice",
            "more than once",
        ),
        ({"a": 1}, lambda table: table.fail("a", "fio has none"), "fio has none", "does not do"),
        ({"a": True}, lambda table: table.number("a", default=0), "not a number", "another type"),
        ({"a": math.nan}, lambda table: table.number("a", default=0), "not a num", "another type"),
        ({"a": 1 << 70}, lambda table: table.number("a", default=0), "out of range", "a limit"),
        ({"a": 1}, lambda table: table.flag("a"), "neither true nor false", "another type"),
        ({"a": 1}, lambda table: table.text("a"), "not a string", "another type"),
        ({"a": [1.5]}, lambda table: table.scalars("a"), "whole numbers or", "another type"),
        ({"a": []}, lambda table: table.tables("a"), "is empty", "incomplete"),
        ({"a": []}, lambda table: table.choices("a", ("y",)), "is empty", "incomplete"),
    ],
)
def test_each_fault_has_its_cause(
    values: dict[str, object], read: Read, what: str, cause: str
) -> None:
    with pytest.raises(UsageError, match=rf"p\.toml: \w+: .*{what}") as caught:
        read(Table(values, "p.toml"))
    assert cause in caught.value.cause
