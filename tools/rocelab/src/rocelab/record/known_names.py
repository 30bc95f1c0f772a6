# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of machines, people and places that a run and this machine know, searched in files.

A second look, which knows nothing of the first: `rocelab.record.share` decides what passes, and
this finds what passed all the same.
"""

from __future__ import annotations

import contextlib
import getpass
import html
import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rocelab.record.share_words import WORDS

_LOGIN = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9_][A-Za-z0-9_.:-]*)")
_HOME = re.compile(r"/(?:home|Users)/([^\s/:;,'\"<>|()]+)|(?<![\w/])~([A-Za-z0-9_.-]+)")
_MAC = re.compile(
    r"(?<![0-9a-f])(?:[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2})(?![0-9a-f])",
    re.IGNORECASE,
)
_IPV4 = re.compile(r"(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)")
_IPV6 = re.compile(r"[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*")
_NAMING = {"host", "hostname", "user", "login", "domain", "address"}
"""Keys whose values are names."""
_AROUND = 30
"""Characters that an error shows on each side of a name."""
_OWN_FILES = {".py", ".j2", ".css", ".toml", ".csv"}


@dataclass(frozen=True)
class Hit:
    """A name in a file."""

    name: str
    file: str
    around: str
    """The text there."""


def of_run(nodes: Iterable[str], documents: Iterable[Mapping[str, object]]) -> set[str]:
    """Return the names in JSON documents of a run, and of its nodes."""
    names: set[str] = set()
    for node in nodes:
        names |= set(_host(node))
    for document in documents:
        for key, text in _texts(document):
            names |= set(_names(text))
            if key in _NAMING:
                names |= set(_host(text))
    return names


def of_this_machine() -> set[str]:
    """Return its name, its user's name, and the user's home folder."""
    names = {*_host(socket.gethostname())}
    with contextlib.suppress(RuntimeError):  # a user without a home
        home = Path.home()
        names |= {home.name, str(home)}
    with contextlib.suppress(KeyError, OSError):  # or without a name
        names.add(getpass.getuser())
    return names


def hits(files: Mapping[str, bytes], names: Iterable[str]) -> Iterator[Hit]:
    """Yield the first place of each name in each file; upper and lower case are the same.

    Names without a letter that are no addresses are numbers, and words of rocelab's own pages name
    nobody: neither is searched.
    """
    sought = {variant: name for name in names for variant in _variants(name.strip())}
    for file, content in files.items():
        text = content.decode("utf-8", "replace")
        searched = html.unescape(text) if file.endswith((".html", ".svg")) else text
        folded = searched.casefold()
        for variant, name in sorted(sought.items()):
            if variant.casefold() not in folded:
                continue
            match = re.search(
                rf"(?<![^\W_]){re.escape(variant)}(?![^\W_])", searched, re.IGNORECASE
            )
            if match and not _is_own_word(variant):
                start, end = max(0, match.start() - _AROUND), match.end() + _AROUND
                yield Hit(name, file, " ".join(searched[start:end].split()))


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield "", str(name)
            yield from _texts(item, str(name))


def _names(text: str) -> Iterator[str]:
    for user, host in _LOGIN.findall(text):
        yield user
        yield from _host(host.rstrip(".:"))
    for home in _HOME.finditer(text):
        yield home[0]
        yield home[1] or home[2]
    yield from _MAC.findall(text)
    for candidate in (*_IPV4.findall(text), *_IPV6.findall(text)):
        if _address(candidate.strip(".")):
            yield candidate.strip(".")


def _host(name: str) -> Iterator[str]:
    """A host's name, its first label and its domain."""
    yield name
    label, dot, domain = name.partition(".")
    if dot and not _address(name):
        yield label
        yield domain


def _variants(name: str) -> Iterator[str]:
    """The ways to write a name; none of what names nobody."""
    digits = re.sub(r"[^0-9a-fA-F]", "", name)
    if _MAC.fullmatch(name):
        pairs = [digits[i : i + 2] for i in range(0, len(digits), 2)]
        fours = [digits[i : i + 4] for i in range(0, len(digits), 4)]
        yield from (":".join(pairs), "-".join(pairs), ".".join(fours), digits)
    elif address := _address(name):
        yield from {name, address.compressed, address.exploded}
    elif len(name) > 1 and re.search(r"[^\W\d_]", name) and not re.fullmatch(r"n\d+", name):
        yield name


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # nobody's: any, and the loopback
    return None if address.is_unspecified or address.is_loopback else address


def _is_own_word(name: str) -> bool:
    if not re.fullmatch(r"[A-Za-z]+", name):
        return False
    return name.lower() in WORDS or name.lower() in _own_words()


@cache
def _own_words() -> frozenset[str]:
    """All words that rocelab itself is written with."""
    package = Path(__file__).parents[1]
    texts = (
        path.read_text("utf-8", "replace")
        for path in package.rglob("*")
        if path.suffix in _OWN_FILES and path.is_file()
    )
    return frozenset(word.lower() for text in texts for word in re.findall(r"[A-Za-z]+", text))
