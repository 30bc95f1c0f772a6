# SPDX-License-Identifier: GPL-2.0-or-later
"""A run without what names machines, people and places, for a report that leaves the house."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from rocelab.record.read import Cell, Json, Run

KEPT = (
    "versions of kernel, driver, programs and packages",
    "processor models, interface names, settings of interface and kernel",
    "the plan with its name, the names of cells, the times of the run",
    "every measured figure but flame graphs",
)
"""What a shared report still tells."""
MASKED = ("host names", "addresses", "paths", "keys", "logins", "output quoted in errors")

_KEY = re.compile(
    r"-----BEGIN [A-Z ]*KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)"
    r"|\b(?:ssh-(?:ed25519|rsa|dss)|ecdsa-sha2-\S+|sk-\S+@openssh\.com)\s+[A-Za-z0-9+/=]+"
    r"|\bSHA256:[A-Za-z0-9+/]{43}=?",
    re.DOTALL,
)
_LOGIN = re.compile(r"\b[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+\b")
_MAC = re.compile(r"\b[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}(?:[:-][0-9a-fA-F]{2}){0,14}\b")
_IPV6 = re.compile(
    r"(?<![\w:])(?=[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:)"
    r"(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F.]{0,15}(?:%\w+)?(?![\w:])"
)
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
# those of the system say nothing of who measured
_PATH = re.compile(r"(?<![\w/.])~?/(?!(?:lib|usr|sys|proc|dev|bin|sbin)/)[^\s:;,'\"<>|()]+")
_PATTERNS = (
    ("key", _KEY),
    ("path", _PATH),
    ("login", _LOGIN),
    ("mac", _MAC),
    ("address", _IPV6),
    ("address", _IPV4),
)


@dataclass
class Mask:
    """Replaces each thing by the same word wherever it is, so that what belongs together stays."""

    names: dict[str, str]
    """Host names, and what stands in their place."""
    _seen: dict[str, dict[str, str]] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """Return a text without what is to be masked."""
        for kind, pattern in _PATTERNS:
            text = pattern.sub(self._word(kind), text)
        for name in sorted(self.names, key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self.names[name], text)
        return text

    def _word(self, kind: str) -> Callable[[re.Match[str]], str]:
        def word(match: re.Match[str]) -> str:
            if kind == "address" and not _is_address(match[0]):
                return match[0]
            seen = self._seen.setdefault(kind, {})
            return seen.setdefault(match[0], f"[{kind} {len(seen) + 1}]")

        return word

    def members(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return a JSON object; its keys are masked, too."""
        return {
            self.text(key): _quoted(item) if key == "cause" else self.value(item)
            for key, item in values.items()
        }

    def value(self, value: object) -> object:
        """Return any JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return self.members(value) if isinstance(value, dict) else value


def _is_address(text: str) -> bool:
    """Whether it is one: a time of day looks like one, too."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def masked(run: Run) -> Run:
    """Return the run as it may be shared: see MASKED and KEPT."""
    nodes = [name for name, _ in run.meta.object("nodes").items()]
    mask = Mask({name: f"n{number}" for number, name in enumerate(nodes, 1)})
    name = mask.names
    return replace(
        run,
        meta=Json(mask.members(run.meta.data)),
        cells=tuple(_cell(cell, mask) for cell in run.cells),
        table=run.table.with_columns(pl.col("node").replace(name)),
        series=tuple(replace(one, node=name.get(one.node, one.node)) for one in run.series),
        stacks=(),  # they name everything that ran on the machines
    )


def _cell(cell: Cell, mask: Mask) -> Cell:
    if cell.content is None:
        return cell
    return replace(cell, content=Json(mask.members(cell.content.data)))


def _quoted(cause: object) -> str:
    """Causes quote what programs printed, which may contain anything."""
    return f"not shared: {len(str(cause))} characters" if cause else ""
