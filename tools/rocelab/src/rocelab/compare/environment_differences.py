# SPDX-License-Identifier: GPL-2.0-or-later
"""Describe how the environments of two runs (run.json) differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rocelab.strict import quote

_OWN = frozenset({"ipv4", "mac", "path", "netdev"})
"""Facts that identify a node without changing what it measures."""
_MAX_LISTED = 12


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """One line for each fact that differs, the most important ones first."""
    lines = [*_of("accelerator", first, second), *_of("rocelab", first, second)]
    lines += _nodes(first, second)
    lines += _plans(_table(first, "plan"), _table(second, "plan"))
    yield from lines[:_MAX_LISTED]
    if len(lines) > _MAX_LISTED:
        yield f"and {len(lines) - _MAX_LISTED} more"


def _nodes(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    ours, theirs = _table(first, "nodes"), _table(second, "nodes")
    if sorted(ours) != sorted(theirs):
        yield f"nodes: {quote(', '.join(ours))} and {quote(', '.join(theirs))}"
    for name in ours:
        if name in theirs:
            yield from _deep(str(name), ours[name], theirs[name])


def _plans(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    yield from _deep("testbed", first.get("testbed"), second.get("testbed"))
    yield from _of("link", _table(first, "testbed"), _table(second, "testbed"))
    yield from _of("probes", _table(first, "plan"), _table(second, "plan"))
    ours, theirs = _benchmarks(first), _benchmarks(second)
    for name in ours:
        if name in theirs:
            yield from _deep(name, ours[name], theirs[name])


def _benchmarks(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of each benchmark that affect what it measures."""
    benchmarks = plan.get("benchmark")
    return {
        " ".join(str(item.get(key, "")) for key in ("tool", "test", "label")).strip(): {
            key: value for key, value in item.items() if key not in ("sizes", "transports")
        }
        for item in (benchmarks if isinstance(benchmarks, list) else [])
        if isinstance(item, dict)
    }


def _deep(where: str, first: object, second: object) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys((*first, *second)):
            if key not in _OWN:
                yield from _deep(f"{where} {key}", first.get(key), second.get(key))
    elif first != second:
        yield f"{where}: {quote(first)} and {quote(second)}"


def _of(key: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    yield from _deep(key, first.get(key), second.get(key))


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = values.get(key)
    return table if isinstance(table, dict) else {}
