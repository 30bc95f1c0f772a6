# SPDX-License-Identifier: GPL-2.0-or-later
"""A run without what names machines, people and places, for a report that leaves the house.

Nothing passes unless a table says so: the fields are in `share_fields`, the words in `share_words`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from rocelab.record import share_fields
from rocelab.record.read import Cell, Json, Run, Series
from rocelab.record.results_table import WIRE
from rocelab.record.share_fields import Fields, Shape
from rocelab.record.share_words import WORDS
from rocelab.record.text import one_line

KEPT = (
    "versions of kernel, driver, programs and packages",
    "processor models, settings of interface and kernel",
    "the plan, the times of the run",
    "every measured figure but flame graphs",
)
"""What a shared report still tells."""
MASKED = (
    *("host names", "addresses", "paths", "keys", "logins", "error messages"),
    "every word that is not one of rocelab's, of a kernel's or of a processor's",
)

# a word of a text, and what may stand around it
_TOKEN = re.compile(r"[^\s,;()\[\]{}<>\"'|=]+")
_PARTS = re.compile(r"[^.\-]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_PLAIN = re.compile(r"[A-Za-z0-9_.,:;()\[\]{}<>\"'|=+\-/%*#~@^!?&\s\N{MICRO SIGN}]*")
# addresses without a letter that would give them away
_ADDRESS = re.compile(
    r"\d+(?:\.\d+){3}"  # IPv4
    r"|::|(?:[0-9a-f]{1,4}:){3}"  # IPv6, and EUI-48 and -64 with colons
    r"|(?:[0-9a-f]{2}-){3}|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}"
    r"|(?<![0-9a-f])[0-9a-f]{11,}",
    re.IGNORECASE,
)
_OURS = re.compile(r"rocelab-[0-9a-f]{12}(?![0-9a-z])")
_SOURCE_HASH = re.compile(r"[0-9A-F]{20,24}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_RUN_TIME = re.compile(r"\d{8}T\d{6}Z(?=-)")
_RELEASE = re.compile(r"\d{1,2}\.\d{1,3}(?:\.\d{1,3})?(?=[-+~_])")


class Mask:
    """Replaces each thing by the same word everywhere, so that what belongs together stays.

    `nodes` are the names of nodes, and `also` words that may pass with those of `share_words`.
    """

    def __init__(self, nodes: Collection[str], also: Collection[str] = ()) -> None:
        self.nodes = {name: f"n{number}" for number, name in enumerate(nodes, 1)}
        self._also = frozenset(also)
        self._seen: dict[str, str] = {}
        self._named = _any_of(self.nodes)
        # in `latency-mean` no part is the host of that name
        self._named_in_names = _any_of(name for name in self.nodes if name.lower() not in WORDS)
        self._as: dict[Shape, Callable[[str], str]] = {
            Shape.NUMBER: self._hidden,
            Shape.WORDS: self.words,
            Shape.NAME: self.name,
            Shape.KERNEL: self._kernel,
            Shape.SOURCE_HASH: self._matching(_SOURCE_HASH),
            Shape.MOMENT: self._matching(_MOMENT),
            Shape.NODE: self._node,
            Shape.PROSE: _length,
        }

    def words(self, text: str) -> str:
        """Mask each word that is unknown or looks like an address."""
        return _TOKEN.sub(self._token, self._named.sub(self._number, text))

    def name(self, text: str) -> str:
        """Mask each part of a name that is unknown; all of it if it looks like an address."""
        time = _RUN_TIME.match(text)
        start = time.end() if time else 0
        rest = self._named_in_names.sub(self._number, text[start:])
        if rest not in self._also and self._suspicious(rest):
            return text[:start] + self._hidden(rest)
        return text[:start] + _PARTS.sub(self._token, rest)

    def _number(self, match: re.Match[str]) -> str:
        return self.nodes[match[0]]

    def _token(self, match: re.Match[str]) -> str:
        token = match[0]
        core = token.rstrip(".:!?")
        fine = not self._suspicious(core) and all(
            map(self._is_known, _LETTERS.findall(_OURS.sub("", core)))
        )
        return token if fine or core in self._also else self._hidden(core) + token[len(core) :]

    @staticmethod
    def _is_known(letters: str) -> bool:
        return letters.isascii() and (len(letters) == 1 or letters.lower() in WORDS)

    @staticmethod
    def _suspicious(text: str) -> bool:
        return bool(_ADDRESS.search(_OURS.sub("", text))) or not _PLAIN.fullmatch(text)

    def _hidden(self, text: str) -> str:
        return self._seen.setdefault(text, f"[masked {len(self._seen) + 1}]") if text else ""

    def _kernel(self, text: str) -> str:
        release, space, rest = text.partition(" ")
        masked = self.words(release)
        if masked != release and (number := _RELEASE.match(release)):
            masked = f"{number[0]}-{self._hidden(release)}"
        return masked + space + self.words(rest)

    def _node(self, text: str) -> str:
        """A node, or several with a plus between them, or the wire."""
        if text in self.nodes:
            return self.nodes[text]
        parts = text.split("+")
        if all(part in self.nodes or part == WIRE for part in parts):
            return "+".join(self.nodes.get(part, part) for part in parts)
        return self._hidden(text)

    def _matching(self, pattern: re.Pattern[str]) -> Callable[[str], str]:
        return lambda text: text if pattern.fullmatch(text) else self._hidden(text)

    def text(self, text: str, shape: Shape) -> str:
        """Return a text as a shape allows it."""
        return self._as[shape](text)

    def value(self, value: object, fields: Fields) -> object:
        """Return a JSON value with the fields and shapes that may pass; others are left out."""
        if isinstance(fields, Mapping):
            return self._members(value, fields) if isinstance(value, dict) else None
        if isinstance(fields, list):
            items = value if isinstance(value, list) else []
            return [self.value(item, fields[0]) for item in items]
        if isinstance(value, str):
            return self.text(value, fields)
        if isinstance(value, bool) or value is None:
            return value
        numeric = isinstance(value, int | float) and math.isfinite(value)
        return value if numeric and abs(value) < _MAX_NUMBER else None  # type: ignore[arg-type]

    def _members(
        self, values: Mapping[str, object], fields: Mapping[str, Any]
    ) -> dict[str, object]:
        members: dict[str, object] = {}
        for key, value in values.items():
            if key in fields:
                members[key] = self.value(value, fields[key])
            elif "@" in fields:
                members[self._node(one_line(key))] = self.value(value, fields["@"])
            elif "*" in fields and not isinstance(value, dict | list):
                members[self.words(key)] = self.value(value, fields["*"])
        return members


_MAX_NUMBER = 1 << 64
"""Of a number: no counter is larger."""


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    longest = sorted(filter(None, names), key=len, reverse=True)
    pattern = "|".join(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" for name in longest)
    return re.compile(pattern or r"(?!)")


def _length(text: str) -> str:
    return f"not shared: {len(text)} characters" if text else ""


def mask_run(run: Run, also: Collection[str] = ()) -> Run:
    """Return the run as it may be shared: see MASKED and KEPT. `also`: words that may pass."""
    mask = Mask(nodes(run), also)
    meta = mask.value(dict(run.meta.data), share_fields.RUN)
    return replace(
        run,
        meta=Json(meta if isinstance(meta, dict) else {}),
        cells=tuple(_cell(cell, mask) for cell in run.cells),
        table=_table(run.table, mask),
        series=tuple(_series(one, mask) for one in run.series),
        stacks=(),  # they name everything that ran on the machines
    )


def nodes(run: Run) -> list[str]:
    """Return the names of the run's nodes, wherever they are."""
    named = [name for name, _ in run.meta.object("nodes").items()]
    for cell in run.cells:
        if cell.content is not None:
            named += [cell.content.text(end) for end in ("client", "server")]
            for step in cell.content.objects("steps"):
                named += [name for name, _ in step.object("counters").items()]
    named += [
        part for text in run.table["node"].unique(maintain_order=True) for part in text.split("+")
    ]
    return list(dict.fromkeys(name for name in named if name and name != WIRE))


def _table(table: pl.DataFrame, mask: Mask) -> pl.DataFrame:
    return table.with_columns(
        pl.col(name).replace({text: mask.text(text, shape) for text in table[name].unique()})
        for name, shape in share_fields.COLUMNS.items()
        if name in table.columns
    )


def _series(series: Series, mask: Mask) -> Series:
    masked: dict[str, Any] = {
        name: mask.text(getattr(series, name), shape)
        for name, shape in share_fields.COLUMNS.items()
        if hasattr(series, name)
    }
    return replace(series, **masked)


def _cell(cell: Cell, mask: Mask) -> Cell:
    name = mask.name(cell.name)
    if cell.content is None:
        return replace(cell, name=name)
    content = mask.value(dict(cell.content.data), share_fields.CELL)
    return replace(cell, name=name, content=Json(content if isinstance(content, dict) else {}))
