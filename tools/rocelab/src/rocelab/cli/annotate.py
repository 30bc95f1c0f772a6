# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab annotate`: a capture with its drivers' costs and the analyzer's findings in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rocelab.cli import console
from rocelab.cli.analyze import Profile
from rocelab.cli.options import Port


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"


def _show(found: dict[str, Any], output: Path) -> None:
    def say(text: str) -> None:
        console.out.print(console.clean(text), markup=False, soft_wrap=True)

    say(
        f"{output}: {found['packets']} packets, {found['roce']} of them RoCE, "
        f"{found['commented']} with a comment"
    )
    say(f"  PSN status: {_counts(found['psn_status'])}")
    say(
        f"  {found['responses']} responses linked to their requests, {found['messages']} packets "
        f"of whole messages; findings: {found['findings']}"
    )
    if driver := found["driver"]:
        say(f"  sender's driver: {driver['tx']} packets ({_counts(driver['sent'])})")
        say(f"  receiver's driver: {driver['rx']} packets ({_counts(driver['received'])})")
    for key, text in (
        ("no_room", "packets without room for a comment (simple packet blocks, broken options)"),
        ("late", "facts known only after their packet had been written: raise --window"),
        ("findings_unplaced", "findings about no single packet, or too many of one: see analyze"),
    ):
        if found[key]:
            say(f"  {found[key]} {text}")
    for row in found["errors"]:
        say(f"  {row['file']}: {row['error']}")


def annotate(
    capture: Annotated[
        Path, typer.Argument(metavar="CAPTURE", help="pcap or pcapng, plain, gzip or zstd.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT.pcapng", help="The new capture.")
    ],
    trace: Annotated[
        list[Path] | None,
        typer.Option(metavar="NODE.pcapng", help="A node's trace by rxedump; repeatable."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (docs/formats/annotate.md).")
    ] = False,
    port: Port = None,
    profile: Annotated[
        Profile,
        typer.Option(help="gbn: breaches of strict Go-Back-N are errors, not notes."),
    ] = Profile.default,
    window: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=1 << 24, help="Packets held in memory."),
    ] = 1 << 17,
) -> None:
    """Write a capture anew, with what is known of each packet in its comments.

    Of any capture: what each PSN is to its connection, which request a response answers, its
    message, and findings. With traces: what the packet cost in its sender's and its receiver's
    driver. Wireshark shows them as fields after `rocelab wireshark install`. Everything that was
    in the capture stays as it was; pcap becomes pcapng.
    """
    from rocelab.capture.annotate import Options
    from rocelab.capture.annotate import annotate as run

    options = Options(ports=port or (), window=window, go_back_n=profile is Profile.gbn)
    found = run(capture, trace or (), output, options)
    if as_json:
        json.dump(found, sys.stdout)
        sys.stdout.write("\n")
    else:
        _show(found, output)
