# SPDX-License-Identifier: GPL-2.0-or-later
"""One side of an A/B comparison, in words: which driver, and with what settings. Runs nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from rocelab import kernel_lines
from rocelab.errors import UsageError
from rocelab.limits import MAX_MTU, MIN_MTU
from rocelab.strict import join_values, quote

VARIANTS = ("instrumented", "events", "delay")
"""Builds of the driver that have events; kernel/Makefile knows them."""
_BLIND = ("stock", "fixes")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,99}")
_VALUE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,199}")
_COMMIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./~^-]{0,199}")


@dataclass(frozen=True)
class Side:
    """What is measured on one side."""

    text: str
    """As the user gave it."""
    variant: str = VARIANTS[0]
    patches: tuple[Path, ...] = ()
    """Folders of patches, or single ones, in the order in which they come on top of the series."""
    tree: Path | None = None
    """A git repository with the driver's source, instead of the kernel's own."""
    commit: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    """Module parameters and their values."""
    sysctls: tuple[tuple[str, str], ...] = ()
    mtu: int | None = None
    line: str | None = None

    @property
    def is_built(self) -> bool:
        """Whether it needs a driver that `make` has not built."""
        return bool(self.patches or self.tree)


def parse(text: str) -> Side:
    """Read a side such as `patches:FOLDER+mtu:1500`. Raises UsageError."""
    side = Side(text)
    for word in _JOINT.split(text):
        side = _with(side, word)
    return side


def _with(side: Side, word: str) -> Side:
    if word in VARIANTS:
        return replace(side, variant=word)
    if word in _BLIND:
        raise UsageError(
            f"the variant {word} cannot be compared by stage",
            cause="it has no events, which tell what a stage costs",
            action=f"Choose from {join_values(VARIANTS)}; `make bench` counts whole packets of "
            f"{join_values(_BLIND)}.",
        )
    key, colon, value = word.partition(":")
    if colon and key in _KEYS:
        if not value:
            raise _wrong(word, "nothing follows the colon")
        return _KEYS[key](side, word, value)
    if "/" in word or Path(word).exists():
        return replace(side, patches=(*side.patches, Path(word)))
    raise _wrong(word, "it is no variant, no path and no setting")


def _patches(side: Side, word: str, value: str) -> Side:
    return replace(side, patches=(*side.patches, _path(word, value)))


def _path(word: str, value: str) -> Path:
    """Return it with `~` expanded, which a shell does only where a word begins with it."""
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise _wrong(word, "there is no such home folder") from error


def _mtu(side: Side, word: str, value: str) -> Side:
    if not value.isdecimal() or not MIN_MTU <= int(value) <= MAX_MTU:
        raise _wrong(word, f"an MTU is a number from {MIN_MTU} to {MAX_MTU}")
    return replace(side, mtu=int(value))


def _line(side: Side, word: str, value: str) -> Side:
    if value not in kernel_lines.LINES:
        raise _wrong(word, f"the kernel lines are {join_values(kernel_lines.LINES)}")
    return replace(side, line=value)


def _parameter(side: Side, word: str, value: str) -> Side:
    return replace(side, parameters=(*side.parameters, _parse_setting(word, value)))


def _sysctl(side: Side, word: str, value: str) -> Side:
    return replace(side, sysctls=(*side.sysctls, _parse_setting(word, value)))


def _parse_setting(word: str, value: str) -> tuple[str, str]:
    name, _, setting = value.partition("=")
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(setting):
        raise _wrong(word, "such a setting is NAME=VALUE")
    return name, setting


def _tree(side: Side, word: str, value: str) -> Side:
    folder, _, commit = value.rpartition("@")
    if not folder or not _COMMIT.fullmatch(commit):
        raise _wrong(word, "a tree is REPOSITORY@COMMIT")
    return replace(side, tree=_path(word, folder), commit=commit)


def _wrong(word: str, cause: str) -> UsageError:
    return UsageError(
        f"{quote(word)} is no side of a comparison",
        cause=cause,
        action="Give a folder of patches, a variant, or tree:REPOSITORY@COMMIT, "
        "parameter:NAME=VALUE, sysctl:NAME=VALUE, mtu:BYTES, line:LINE; join several with +.",
    )


_KEYS = {
    "patches": _patches,
    "tree": _tree,
    "parameter": _parameter,
    "sysctl": _sysctl,
    "mtu": _mtu,
    "line": _line,
}
# a folder's name may contain a plus
_JOINT = re.compile(rf"\+(?=(?:{'|'.join((*VARIANTS, *_BLIND))})(?:\+|$)|(?:{'|'.join(_KEYS)}):)")
