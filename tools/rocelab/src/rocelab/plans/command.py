# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's own command in a plan: what runs, when it begins, and how its numbers are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rocelab.errors import UsageError
from rocelab.plans.ready import Ready
from rocelab.strict import Table, quote

TOOL = "command"
_SECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {
    **{f"{name}B/s": 1000.0**power for power, name in enumerate(("", "k", "M", "G"))},
    **{f"{name}iB/s": 1024.0**power for power, name in enumerate(("K", "M", "G"), start=1)},
    **{f"{name}bit/s": 1000.0**power / 8 for power, name in enumerate(("", "k", "M", "G"))},
}
UNITS: Mapping[str, Mapping[str, float]] = {
    "latency": _SECONDS,
    "round_trip": _SECONDS,
    "time": _SECONDS,
    "bandwidth": _BYTES,
    "rate": {"1/s": 1.0, "k/s": 1e3, "M/s": 1e6},
}
"""By test: each unit's number of ns, bytes/s or 1/s."""
VALUE, MESSAGES = "value", "messages"
"""Named groups of a regular expression."""
_MAX_WORDS = 4096
_PATH = r"[^.\s]{1,60}(\.[^.\s]{1,60}){0,15}"
_NAMES = re.compile(r"[a-z]{1,12}")
_TAKEN = ("device", "gid", "address", "netdev", "peer", "size", "iterations", "tcp_port")
_MAX_COMBINATIONS = 64
_LABEL_LENGTH = 20


@dataclass(frozen=True)
class CommandPlan:
    """What runs on the two nodes, and how its number is read."""

    client: tuple[str, ...]
    server: tuple[str, ...] = ()
    """Runs on the second node; empty: the client alone."""
    ready: str = ""
    """When the client may start, as for `rocelab exec --ready`; empty: when the server listens."""
    json: str = ""
    """Where the value is in the JSON that the client prints, such as `jobs.0.rate`."""
    messages: str = ""
    """Where in that JSON the number of messages is."""
    regex: str = ""
    """Or a regular expression for a line, with a group `value`, and perhaps `messages`."""
    unit: str = ""
    """Of the value; empty without one: how long the client ran is measured."""
    folder: str = ""
    """Folder of this machine that is copied to the nodes; empty: none."""
    may_fail: bool = False
    """Whether a status other than 0 is a result."""

    @property
    def is_ready(self) -> Ready:
        """When the client may start."""
        return Ready.parse(self.ready) if self.ready else Ready()


def fill_in(argv: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words with each `{name}` of `values` replaced; what has no value stays."""
    for name, value in values.items():
        argv = [word.replace(f"{{{name}}}", value) for word in argv]
    return tuple(argv)


def read(table: Table, test: str) -> CommandPlan:
    """Read a benchmark's table `command`. Raises UsageError."""
    units = UNITS[test]
    plan = CommandPlan(
        client=_words(table, "client"),
        server=_words(table, "server") if table.has("server") else (),
        ready=table.text("ready", default=""),
        json=table.matching("json", f"({_PATH})?", "a path such as `jobs.0.rate`", default=""),
        messages=table.matching("messages", f"({_PATH})?", "a path such as `sent`", default=""),
        regex=_regex(table),
        unit=table.choice("unit", ("", *units), default=""),
        folder=_folder(table),
        may_fail=table.flag("may_fail"),
    )
    if not plan.client:
        table.fail("client", "names no command", action='For example: client = ["my-client"].')
    if plan.ready:
        try:
            Ready.parse(plan.ready, "ready")
        except UsageError as error:
            table.fail("ready", error.what, action=error.action, cause=error.cause)
    if plan.ready and not plan.server:
        table.fail("ready", "there is no server to wait for", action="Name the server.")
    if plan.json and plan.regex:
        table.fail("regex", "the value is read from JSON", action="Give json or regex.")
    if plan.messages and not plan.json:
        table.fail(
            "messages",
            "is a place in JSON",
            action="Give json, too; or a group `messages` in the regular expression.",
        )
    printed = bool(plan.json or plan.regex)
    if test != "time" and not printed:
        table.fail("json", "is missing", action="Say where the value is: json or regex.")
    if printed != bool(plan.unit):
        table.fail(
            "unit",
            "is missing" if printed else "how long the client ran is measured in seconds",
            action=f"Give one of {', '.join(units)}." if printed else "Remove it.",
        )
    table.done()
    return plan


def each(table: Table, label: str, command: CommandPlan) -> Iterator[tuple[str, CommandPlan]]:
    """Yield (label, command) for each combination of the table's `parameters`."""
    names = table.keys()
    choices = [[(name, value) for value in _values(table, name)] for name in names]
    table.done()
    combinations = list(product(*choices))
    if len(combinations) > _MAX_COMBINATIONS:
        table.fail(
            names[-1],
            f"makes {len(combinations)} benchmarks, more than {_MAX_COMBINATIONS}",
            action="Divide them among several plans.",
        )
    for chosen in combinations:
        text = label + "".join(re.sub(r"[^a-z0-9]", "", f"{n}{v}".lower()) for n, v in chosen)
        if len(text) > _LABEL_LENGTH:
            table.fail(
                chosen[-1][0],
                f"the label {quote(text)} is longer than {_LABEL_LENGTH}",
                action="Choose shorter names.",
            )
        known = dict(chosen)
        yield (
            text,
            replace(
                command,
                client=fill_in(command.client, known),
                server=fill_in(command.server, known),
            ),
        )


def _values(table: Table, name: str) -> list[str]:
    if not _NAMES.fullmatch(name) or name in _TAKEN:
        table.fail(
            quote(name), "cannot name a parameter", action="Use up to 12 of a-z, and no other name."
        )
    values = table.scalars(name)
    if not values:
        table.fail(name, "the list is empty", action="Give numbers or strings.")
    return values


def _words(table: Table, key: str) -> tuple[str, ...]:
    """Return a command line, whose words may repeat."""
    words = table.words(key)
    if len(words) > _MAX_WORDS or any("\0" in word for word in words):
        table.fail(
            key,
            f"is no command line: it has over {_MAX_WORDS} words, or a null character",
            action="Put it into a script, and run that.",
        )
    return words


def _folder(table: Table) -> str:
    """Return a path below the folder that a run is started in."""
    folder = table.text("folder", default="")
    if folder.startswith("/") or ".." in folder.split("/") or "\0" in folder:
        table.fail(
            "folder",
            f"{quote(folder)} leads out of the current folder",
            action="Name a folder below the one that rocelab is started in.",
        )
    return folder


def _regex(table: Table) -> str:
    pattern = table.text("regex", default="")
    if pattern and not re.search(rf"\(\?P?<{VALUE}>", pattern):
        table.fail(
            "regex",
            f"has no group {VALUE!r}",
            action=f"For example: regex = 'rate: (?P<{VALUE}>[0-9.]+)'.",
        )
    if pattern and (problem := _pattern_fault(pattern)):
        table.fail(
            "regex",
            f"cannot be used: {quote(problem)}",
            action="See https://docs.rs/regex: it has no look-around and no back-references.",
        )
    return pattern


def _pattern_fault(pattern: str) -> str:
    """What is wrong with a regular expression; empty if nothing is."""
    # takes polars, whose regular expressions need time in proportion to the text, whoever wrote
    # them; no other plan needs it
    import polars as pl

    try:
        pl.Series([""]).str.extract_groups(pattern)
    except pl.exceptions.PolarsError as error:
        return str(error).strip().splitlines()[-1]
    return ""
