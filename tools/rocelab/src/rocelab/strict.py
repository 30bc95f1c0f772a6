# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a TOML table and refuse what it should not hold, naming file, key and what is allowed."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

from rocelab.errors import UsageError

_SHOWN = 60
"""Characters of a bad value that an error message repeats."""
_LARGEST_FILE = 1 << 20


def read_toml(path: Path, *, what: str, action: str) -> dict[str, Any]:
    """The tables of a TOML file of the sort `what`, at most 1 MiB.

    Raises UsageError; when the file cannot be opened, `action` is in it.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise UsageError(f"{shown(str(path))}: too large for {_a(what)} (over 1 MiB)")
        return parse_toml(data.decode("utf-8"), shown(str(path))[1:-1], what=what)
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(str(path))}: not UTF-8 text, so not {_a(what)}") from error
    except OSError as error:
        raise UsageError(
            f"cannot read {what} {shown(str(path))}: {error.strerror}", action=action
        ) from error


def parse_toml(text: str, source: str, *, what: str) -> dict[str, Any]:
    """The tables of TOML text; `source` names it in messages. Raises UsageError."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"{source}: not valid TOML: {shown(str(error))[1:-1]}",
            action=f"docs/formats/{what}.md shows {_a(what)}.",
        ) from error


def _a(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


class Table:
    """One table of a file written by a person: every key is asked for, or refused by `done`.

    `source` is the file's name and `where` the table's place in it, for messages only.
    """

    def __init__(self, values: Mapping[str, Any], source: str, where: str = "") -> None:
        self._values = values
        self._source = source
        self._where = where
        self._known: list[str] = []

    def fail(self, key: str, problem: str, *, action: str = "") -> NoReturn:
        """Raise UsageError about `key` of this table."""
        raise UsageError(f"{self._source}: {self._path(key)}: {problem}", action=action)

    def has(self, key: str) -> bool:
        """Whether the table holds an optional key."""
        self._known.append(key)
        return key in self._values

    def integer(self, key: str, *, default: int | None = None, low: int, high: int) -> int:
        """A whole number from `low` to `high`; required when there is no default."""
        return self._whole(key, self._take(key, default), low, high)

    def number(self, key: str, *, default: float) -> float:
        """A number, whole or not; `default` when it is absent."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            self.fail(key, f"{shown(value)} is not a number")
        return float(value)

    def choice(self, key: str, allowed: Collection[str], *, default: str | None = None) -> str:
        """One of `allowed`."""
        return self._one_of(key, self._take(key, default), allowed)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false; `default` when it is absent."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"{shown(value)} is neither true nor false")
        return value

    def text(self, key: str, *, default: str | None = None) -> str:
        """A string; required when there is no default."""
        value = self._take(key, default)
        if not isinstance(value, str):
            self.fail(key, f"{shown(value)} is not a string")
        return value

    def matching(self, key: str, pattern: str, words: str, *, default: str | None = None) -> str:
        """A string that is `pattern` from end to end; `words` say what that is."""
        value = self._take(key, default)
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
            self.fail(key, f"{shown(value)} is not {words}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of distinct strings; absent means none."""
        values = self._distinct(key, self._take(key, []))
        for value in values:
            if not isinstance(value, str):
                self.fail(key, f"{shown(value)} is not a string")
        return tuple(str(value) for value in values)

    def choices(
        self,
        key: str,
        allowed: Collection[str],
        *,
        default: Collection[str] | None = None,
        empty: bool = False,
    ) -> tuple[str, ...]:
        """A list of distinct values out of `allowed`; empty only with `empty`."""
        values = self._distinct(key, self._take(key, None if default is None else list(default)))
        if not values and not empty:
            self.fail(key, "the list is empty", action=f"Allowed: {listed(allowed)}.")
        return tuple(self._one_of(key, value, allowed) for value in values)

    def integers(self, key: str, *, low: int, high: int) -> tuple[int, ...]:
        """A list, not empty, of distinct whole numbers from `low` to `high`."""
        values = self._distinct(key, self._take(key, None))
        if not values:
            self.fail(key, "the list is empty")
        return tuple(self._whole(key, value, low, high) for value in values)

    def optional(self, key: str, allowed: Collection[int]) -> int | None:
        """One of the `allowed` numbers, or None when the key is absent."""
        self._known.append(key)
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
            numbers = listed([str(number) for number in allowed])
            self.fail(key, f"unknown value {shown(value)}", action=f"Allowed: {numbers}.")
        return value

    def table(self, key: str) -> Table:
        """A table within this one; absent means empty."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            self.fail(key, f"{shown(value)} is not a table", action=f"Write it as [{key}].")
        return Table(value, self._source, self._path(key))

    def tables(self, key: str) -> list[Table]:
        """A list of tables, not empty."""
        value = self._take(key, None)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(key, "is not a list of tables", action=f"Write each one as [[{key}]].")
        if not value:
            self.fail(key, "the list is empty", action=f"Write at least one [[{key}]].")
        return [
            Table(item, self._source, f"{self._path(key)}[{number}]")
            for number, item in enumerate(value, start=1)
        ]

    def done(self) -> None:
        """Raise UsageError when the table holds a key that nobody asked for."""
        for key in self._values:
            if key not in self._known:
                self.fail(
                    shown(key) if not key.isidentifier() else key,
                    "unknown key" + _did_you_mean(key, self._known),
                    action=f"Allowed here: {listed(self._known)}.",
                )

    def _take(self, key: str, default: object) -> object:
        self._known.append(key)
        value = self._values.get(key, default)
        if value is None:
            self.fail(key, "is missing")
        return value

    def _one_of(self, key: str, value: object, allowed: Collection[str]) -> str:
        if not isinstance(value, str) or value not in allowed:
            hint = _did_you_mean(value, allowed) if isinstance(value, str) else ""
            self.fail(
                key, f"unknown value {shown(value)}{hint}", action=f"Allowed: {listed(allowed)}."
            )
        return value

    def _whole(self, key: str, value: object, low: int, high: int) -> int:
        # bool is an int in Python, but not in a plan
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(key, f"{shown(value)} is not a whole number")
        if not low <= value <= high:
            allowed = f"{low}" if low == high else f"{low} to {high}"
            self.fail(key, f"{value} is out of range", action=f"Allowed: {allowed}.")
        return value

    def _distinct(self, key: str, value: object) -> list[object]:
        if not isinstance(value, list):
            self.fail(key, f"{shown(value)} is not a list")
        for index, item in enumerate(value):
            if item in value[:index]:
                self.fail(key, f"{shown(item)} is there twice")
        return value

    def _path(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key


def shown(value: object) -> str:
    """A value of somebody else's as it may stand in a message: ASCII, escaped, short."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def listed(values: Collection[str]) -> str:
    """Allowed values, for a message."""
    return ", ".join(values)


def _did_you_mean(word: str, allowed: Collection[str]) -> str:
    close = difflib.get_close_matches(word, list(allowed), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
