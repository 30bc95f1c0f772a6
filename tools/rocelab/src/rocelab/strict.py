# SPDX-License-Identifier: GPL-2.0-or-later
"""Read TOML strictly: refuse unknown keys and bad values, naming file, key and what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rocelab import limits
from rocelab.conditions import system_error
from rocelab.directory import read_named
from rocelab.errors import UsageError

_SHOWN = 60
"""The most characters of a bad value that an error message quotes."""
_MAX_NUMBER = 1 << 64
_TYPO = "a typo, or the file is for another version of rocelab"
_INCOMPLETE = "the file is incomplete, or for another version of rocelab"
_OTHER_TYPE = "the value is of another type, such as text in place of a number"
_LIMIT = "the value is beyond a limit of rocelab"
_REPEATED = "an element was written more than once"
_UNSUPPORTED = "the file asks for what rocelab does not do"


def read_toml(path: Path, *, kind: str, action: str) -> dict[str, Any]:
    """Read a TOML file of at most 1 MiB; `kind` names it in messages.

    Raises UsageError, with `action` as the advice if the file cannot be opened.
    """
    try:
        data = read_named(path, limit=limits.MAX_TOML_BYTES)
        return parse_toml(data.decode("utf-8"), quote(str(path))[1:-1], kind=kind)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{quote(str(path))}: not UTF-8 text, so not {_a(kind)}",
            cause="it is another kind of file",
            action=action,
        ) from error
    except OSError as error:
        raise system_error(
            error, f"cannot read {kind} {quote(str(path))}", action=action
        ) from error


def parse_toml(text: str, source: str, *, kind: str) -> dict[str, Any]:
    """Parse TOML text; `source` names it in messages. Raises UsageError."""
    # commands that read no TOML start without it
    import tomllib

    if sum(line.count(".") ** 2 for line in text.split("\n")) > limits.MAX_TOML_WORK:
        raise UsageError(
            f"{source}: keys are nested too deeply",
            cause="a line has hundreds of dots, as no file that people write",
            action=f"See docs/formats/{kind}.md for {_a(kind)}.",
        )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{source}: not valid TOML: {quote(str(error))[1:-1]}",
            cause="it is another kind of file, or was edited by hand",
            action=f"See docs/formats/{kind}.md for {_a(kind)}.",
        ) from error


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


class Table:
    """One table of a TOML file; `done` refuses the keys that were not read.

    `source` is the file's name and `where` the table's place in it, both for messages only.
    """

    def __init__(self, values: Mapping[str, Any], source: str, where: str = "") -> None:
        self._values = values
        self._source = source
        self._where = where
        self._known: dict[str, None] = {}

    def fail(
        self, key: str, problem: str, *, action: str = "", cause: str = _UNSUPPORTED
    ) -> NoReturn:
        """Raise UsageError about `key` of this table."""
        raise UsageError(
            f"{self._source}: {self._path(key)}: {problem}",
            cause=cause,
            action=action or "Correct it there.",
        )

    def has(self, key: str) -> bool:
        """Return whether the table has an optional key."""
        self._known[key] = None
        return key in self._values

    def keys(self) -> list[str]:
        """Return all keys, for a table whose keys are names; `done` still refuses unread ones."""
        return list(self._values)

    def integer(self, key: str, *, default: int | None = None, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`; required if there is no default."""
        return self._whole(key, self._take(key, default), low, high)

    def number(self, key: str, *, default: float) -> float:
        """Return a number, whole or not; `default` if it is absent."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            self.fail(key, f"{quote(value)} is not a number", cause=_OTHER_TYPE)
        if isinstance(value, int) and abs(value) > _MAX_NUMBER:
            self.fail(key, f"{quote(value)} is out of range", cause=_LIMIT)
        return float(value)

    def choice(self, key: str, allowed: Collection[str], *, default: str | None = None) -> str:
        """Return one of `allowed`; required if there is no default."""
        return self._one_of(key, self._take(key, default), allowed)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return true or false; `default` if it is absent."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"{quote(value)} is neither true nor false", cause=_OTHER_TYPE)
        return value

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return a string; required if there is no default."""
        value = self._take(key, default)
        if not isinstance(value, str):
            self.fail(key, f"{quote(value)} is not a string", cause=_OTHER_TYPE)
        return value

    def matching(self, key: str, pattern: str, words: str, *, default: str | None = None) -> str:
        """Return a string that `pattern` matches as a whole; `words` describe it in messages."""
        value = self._take(key, default)
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
            self.fail(key, f"{quote(value)} is not {words}", cause=_TYPO)
        return value

    def texts(
        self, key: str, pattern: str = r"(?s:.*)", words: str = "a string"
    ) -> tuple[str, ...]:
        """Return a list of distinct strings, each as `matching` wants it; empty if it is absent."""
        values = self._distinct(key, self._take(key, []))
        for value in values:
            if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
                self.fail(key, f"{quote(value)} is not {words}", cause=_TYPO)
        return tuple(str(value) for value in values)

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, which may repeat; required."""
        values = self._list(key, self._take(key, None))
        if not all(isinstance(value, str) for value in values):
            self.fail(key, "is not a list of strings", cause=_OTHER_TYPE)
        return tuple(map(str, values))

    def scalars(self, key: str) -> list[str]:
        """Return a list of distinct numbers and strings, as text."""
        values = self._distinct(key, self._take(key, None))
        if any(isinstance(value, bool) or not isinstance(value, str | int) for value in values):
            self.fail(key, "is not a list of whole numbers or strings", cause=_OTHER_TYPE)
        return list(map(str, values))

    def choices(
        self,
        key: str,
        allowed: Collection[str],
        *,
        default: Collection[str] | None = None,
        empty: bool = False,
    ) -> tuple[str, ...]:
        """Return a list of distinct values of `allowed`; it may be empty only with `empty`."""
        values = self._distinct(key, self._take(key, None if default is None else list(default)))
        if not values and not empty:
            self.fail(
                key,
                "the list is empty",
                action=f"Allowed: {join_values(allowed)}.",
                cause=_INCOMPLETE,
            )
        return tuple(self._one_of(key, value, allowed) for value in values)

    def integers(self, key: str, *, low: int, high: int) -> tuple[int, ...]:
        """Return a non-empty list of distinct whole numbers from `low` to `high`."""
        values = self._distinct(key, self._take(key, None))
        if not values:
            self.fail(key, "the list is empty", cause=_INCOMPLETE)
        return tuple(self._whole(key, value, low, high) for value in values)

    def optional(self, key: str, allowed: Collection[int]) -> int | None:
        """Return one of the `allowed` numbers, or None if the key is absent."""
        self._known[key] = None
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
            numbers = join_values([str(number) for number in allowed])
            self.fail(
                key, f"unknown value {quote(value)}", action=f"Allowed: {numbers}.", cause=_TYPO
            )
        return value

    def table(self, key: str) -> Table:
        """Return a table within this one; empty if it is absent."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            self.fail(
                key,
                f"{quote(value)} is not a table",
                action=f"Write it as [{key}].",
                cause=_OTHER_TYPE,
            )
        return Table(value, self._source, self._path(key))

    def tables(self, key: str) -> list[Table]:
        """Return a non-empty list of tables."""
        value = self._take(key, None)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(
                key,
                "is not a list of tables",
                action=f"Write each one as [[{key}]].",
                cause=_OTHER_TYPE,
            )
        self._check_length(key, value)
        if not value:
            self.fail(
                key, "the list is empty", action=f"Write at least one [[{key}]].", cause=_INCOMPLETE
            )
        return [
            Table(item, self._source, f"{self._path(key)}[{number}]")
            for number, item in enumerate(value, start=1)
        ]

    def done(self) -> None:
        """Raise UsageError if the table has a key that was not read."""
        for key in self._values:
            if key not in self._known:
                self.fail(
                    quote(key) if not key.isidentifier() else key,
                    "unknown key" + _did_you_mean(key, self._known),
                    action=f"Allowed here: {join_values(list(self._known))}.",
                    cause=_TYPO,
                )

    def _take(self, key: str, default: object) -> object:
        self._known[key] = None
        value = self._values.get(key, default)
        if value is None:
            self.fail(key, "is missing", cause=_INCOMPLETE)
        return value

    def _one_of(self, key: str, value: object, allowed: Collection[str]) -> str:
        if not isinstance(value, str) or value not in allowed:
            hint = _did_you_mean(value, allowed) if isinstance(value, str) else ""
            self.fail(
                key,
                f"unknown value {quote(value)}{hint}",
                action=f"Allowed: {join_values(allowed)}.",
                cause=_TYPO,
            )
        return value

    def _whole(self, key: str, value: object, low: int, high: int) -> int:
        # bool is an int in Python, but not in a plan
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(key, f"{quote(value)} is not a whole number", cause=_OTHER_TYPE)
        if not low <= value <= high:
            allowed = f"{low}" if low == high else f"{low} to {high}"
            self.fail(
                key, f"{quote(value)} is out of range", action=f"Allowed: {allowed}.", cause=_LIMIT
            )
        return value

    def _distinct(self, key: str, value: object) -> list[object]:
        items = self._list(key, value)
        for index, item in enumerate(items):
            if item in items[:index]:
                self.fail(key, f"{quote(item)} appears twice", cause=_REPEATED)
        return items

    def _list(self, key: str, value: object) -> list[object]:
        if not isinstance(value, list):
            self.fail(key, f"{quote(value)} is not a list", cause=_OTHER_TYPE)
        self._check_length(key, value)
        return value

    def _check_length(self, key: str, values: Sequence[object]) -> None:
        if len(values) > limits.MAX_ITEMS:
            self.fail(
                key,
                f"the list has {len(values)} items",
                action=f"Allowed: {limits.MAX_ITEMS}.",
                cause=_LIMIT,
            )

    def _path(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key


def quote(value: object) -> str:
    """Return an untrusted value in a form that is safe in a message: ASCII, escaped, short."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def join_values(values: Collection[str]) -> str:
    """Join values for a message."""
    return ", ".join(values)


def _did_you_mean(word: str, allowed: Collection[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, list(allowed), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
