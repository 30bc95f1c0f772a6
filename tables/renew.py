#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Renew what the checkout keeps of tables/stages.csv in files that must stand alone.

These are the driver's header, scripts and pages: they are read or built without anything of ours.
Each has regions between comments `tables/renew.py: NAME` and `tables/renew.py: end`. What is built
or run here reads the table itself. With --check nothing is written; exit status 1 means that a
file is not up to date.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
Row = dict[str, str]
RECORDS = {"TX": "tx_packet", "RX": "rx_packet", "DONE": "rx_done"}
"""The driver's records: in its header's identifiers, and the event of each."""


def stages() -> list[Row]:
    """The rows of the table."""
    with (ROOT / "tables/stages.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def choose(rows: Sequence[Row], **conditions: str) -> list[Row]:
    """The rows whose columns have these values, in order."""
    return [row for row in rows if all(row[key] == value for key, value in conditions.items())]


def names(rows: Sequence[Row], **conditions: str) -> list[str]:
    """The names of stages, as `chosen`."""
    return [row["stage"] for row in choose(rows, **conditions)]


def record_lists(rows: Sequence[Row]) -> str:
    """The C lists that make the driver's enums and its trace events."""
    lists = []
    for record, event in RECORDS.items():
        entries = [f"X({record}, {name.upper()}, {name})" for name in names(rows, event=event)]
        lines = [f"#define RXE_{record}_LIST(X)", *(f"\t{entry}" for entry in entries)]
        # the kernel's tabs are eight columns wide
        padded = [f"{line}{chr(9) * -(-(72 - width(line)) // 8)}\\\n" for line in lines[:-1]]
        lists.append("".join(padded) + lines[-1] + "\n")
    return "\n".join(lists)


def width(line: str) -> int:
    """Columns of a line with tabs."""
    return len(line.expandtabs(8))


def events_table(event: str) -> Callable[[Sequence[Row]], str]:
    """The stages of an event, where each ends and what it contains."""

    def table(rows: Sequence[Row]) -> str:
        stages = choose(rows, event=event)
        columns = ["stage", *(["ends"] if any(row["ends"] for row in stages) else []), "contains"]
        cells = [{**row, "stage": f"`{row['stage']}`"} for row in stages]
        return markdown(columns, [[row[column] for column in columns] for row in cells])

    return table


def manual_table(direction: str) -> Callable[[Sequence[Row]], str]:
    """The stages of a direction and what the driver does."""
    return lambda rows: markdown(
        ["stage", "what the driver does"],
        [[f"`{row['stage']}`", row["meaning"]] for row in choose(rows, direction=direction)],
    )


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def sums(rows: Sequence[Row]) -> str:
    """What encapsulation and decapsulation are."""
    capsules = ("encapsulation", "decapsulation")
    text = [f"**{whole}** is {' + '.join(names(rows, capsule=whole))}" for whole in capsules]
    apart = [f"`{name}`" for name in names(rows, direction="tx", capsule="none", subject="packet")]
    return f"{'; '.join(text)}.\n{', '.join(apart[:-1])} and {apart[-1]} stand apart.\n"


def histograms(event: str) -> Callable[[Sequence[Row]], str]:
    """bpftrace statements that count the stages of an event, numbered in a packet's order."""

    def statements(rows: Sequence[Row]) -> str:
        text = ""
        for row in choose(rows, event=event):
            number = 1 + names(rows, direction=row["direction"]).index(row["stage"])
            field = f"args.{row['stage']}_ns"
            if event == "start_xmit":
                field = "nsecs - @handed_over[(uint64)args.skbaddr]"
            line = f'@ns["{row["direction"]} {number} {row["stage"]}"] = hist({field});'
            condition = {"requests": "args.role == 0", "some": field}.get(row["passed"])
            text += f"if ({condition}) {{\n\t{line}\n}}\n" if condition else f"{line}\n"
        return text

    return statements


def plugin_tables(rows: Sequence[Row]) -> str:
    """The Lua tables of each name once, with its meaning in each direction, and of the sums."""
    text = "local STAGES = {\n"
    for name in dict.fromkeys(names(rows)):
        meanings = dict.fromkeys(row["meaning"] for row in choose(rows, stage=name))
        text += f'    {{ "{name}", "{" / ".join(meanings)}" }},\n'
    text += "}\n"
    for whole in ("encapsulation", "decapsulation"):
        listed = ", ".join(f'"{name}"' for name in names(rows, capsule=whole))
        text += f"local {whole.upper()} = {{ {listed} }}\n"
    return text


REGIONS: dict[str, dict[str, Callable[[Sequence[Row]], str]]] = {
    "kernel/src/rxe_record.h": {"stages": record_lists},
    "ebpf/scripts/rxelat.bt": {
        event: histograms(event) for event in ("tx_packet", "start_xmit", "rx_packet", "rx_done")
    },
    "tools/wireshark/rocelab.lua": {"stages": plugin_tables},
    "docs/events.md": {event: events_table(event) for event in RECORDS.values()},
    "docs/man/rxestat.8.md": {
        "tx": manual_table("tx"), "rx": manual_table("rx"), "sums": sums,
    },
}  # fmt: skip


def renew(
    text: str, regions: dict[str, Callable[[Sequence[Row]], str]], rows: Sequence[Row]
) -> str:
    """A file's text with its regions made again."""
    for name, make in regions.items():
        region = re.compile(
            rf"^([ \t]*)(\S+ tables/renew\.py: {name}\b.*\n)(?:.*\n)*?"
            r"(?=.*tables/renew\.py: end\b)",
            re.MULTILINE,
        )
        begin = region.search(text)
        if not begin:
            sys.exit(f"tables/renew.py: no region {name} in the file")
        indent, comment = begin[1], begin[2]
        body = "".join(f"{indent}{line}\n" if line else "\n" for line in make(rows).splitlines())
        text = text[: begin.start()] + indent + comment + body + text[begin.end() :]
    return text


def main() -> int:
    """Renew, or with --check say what is out of date."""
    rows, stale = stages(), []
    for name, regions in REGIONS.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        content = renew(text, regions, rows)
        if content != text:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                path.write_text(content, encoding="utf-8")
    for name in stale:
        print(f"{'out of date' if '--check' in sys.argv[1:] else 'renewed'}: {name}")
    return int(bool(stale) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
