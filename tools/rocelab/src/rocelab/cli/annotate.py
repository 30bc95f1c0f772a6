# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab annotate`: add driver costs and analyzer findings to a capture's comments."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from rocelab.cli import options
from rocelab.errors import ExitCode
from rocelab.terminal import console


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"


def _show(summary: dict[str, Any], output: Path) -> None:
    def say(text: str) -> None:
        console.out().print(console.clean(text), markup=False, soft_wrap=True)

    say(
        f"{output}: {summary['packets']} packets, {summary['roce']} of them RoCE, "
        f"{summary['commented']} with a comment"
    )
    say(f"  PSN status: {_counts(summary['psn_status'])}")
    say(
        f"  {summary['responses']} responses linked to their requests, "
        f"{summary['messages']} packets in complete messages; findings: {summary['findings']}, "
        f"lines of the verdict: {summary['verdict']}"
    )
    if driver := summary["driver"]:
        say(f"  sender's driver: {driver['tx']} packets ({_counts(driver['sent'])})")
        say(f"  receiver's driver: {driver['rx']} packets ({_counts(driver['received'])})")
    for key, text in (
        ("no_room", "packets without room for a comment (simple packet blocks, broken options)"),
        ("late", "facts found only after their packet had been written: raise --window"),
        ("findings_unplaced", "findings not tied to one packet, or too many for it: run analyze"),
    ):
        if summary[key]:
            say(f"  {summary[key]} {text}")
    for row in summary["errors"]:
        say(f"  {row['file']}: {row['error']}")


@click.command()
@click.argument(
    "capture", type=options.PATH, metavar="CAPTURE", help="pcap or pcapng, plain, gzip or zstd."
)
@click.option(
    "-o",
    "--output",
    type=options.PATH,
    required=True,
    metavar="OUT.pcapng",
    help="The new capture.",
)
@click.option(
    "--trace",
    type=options.PATH,
    multiple=True,
    metavar="NODE.pcapng",
    help="A node's rxedump trace; repeatable.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object (docs/formats/annotate.md)."
)
@options.port
@options.profile
@click.option(
    "--window",
    type=click.IntRange(min=1, max=1 << 24),
    default=1 << 17,
    metavar="N",
    help="Packets to hold in memory.",
)
def annotate(
    capture: Path,
    output: Path,
    trace: tuple[Path, ...],
    as_json: bool,
    port: tuple[int, ...],
    profile: options.Profile,
    window: int,
) -> None:
    """Copy a capture and comment each packet with what is known about it.

    For any capture, a comment gives the PSN's status, the request that a response answers, the
    packet's message, findings, and lines of the verdict that name it. With traces it also gives
    what the packet cost in the sender's and the receiver's driver. Wireshark shows these as fields
    after `rocelab wireshark install`. Packets and existing comments are kept; the output is always
    pcapng. Exits with 1 if a file ends early: the packets before that are there.
    """
    console.say(f"reading {capture}")
    from rocelab.capture.annotate import Options
    from rocelab.capture.annotate import annotate as run

    chosen = Options(ports=port, window=window, go_back_n=profile is options.Profile.gbn)
    summary = run(capture, trace, output, chosen)
    if as_json:
        sys.stdout.write(json.dumps(summary) + "\n")
    else:
        _show(summary, output)
    if summary["errors"]:
        raise Exit(ExitCode.FINDINGS)
