# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab export`: joined packets for other tools."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rocelab.cli import options
from rocelab.terminal import console


@click.command()
@options.join_where
@click.option(
    "--perfetto",
    type=options.PATH,
    required=True,
    metavar="FILE.json",
    help="Write a trace for ui.perfetto.dev here.",
)
@options.join_traces
@options.one_clock
@options.port
@click.option(
    "--packets",
    type=click.IntRange(min=1, max=1_000_000),
    default=2000,
    metavar="N",
    help="Packets of each place, at most.",
)
def export(
    where: Path,
    perfetto: Path,
    trace: tuple[Path, ...],
    one_clock: bool,
    port: tuple[int, ...],
    packets: int,
) -> None:
    """Write the life of each packet across both machines as a trace.

    Needs the drivers' records: add "rxedump" to the plan's probes. Tracks are what each node sends
    and receives, and the link; flows are messages; drops and retransmissions are instants. Unless
    all machines share a clock, the nodes' clocks are put on the capture's, and the trace says how
    exactly (docs/formats/perfetto.md).
    """
    console.say(f"reading {where}")
    from rocelab import correlate
    from rocelab.conditions import check_new_file, system_error
    from rocelab.correlate import trace_events
    from rocelab.directory import Directory

    check_new_file(
        perfetto, "the trace", action="Name a file with --perfetto.", begins=b"traceEvents"
    )
    places = correlate.find(where, trace, one_clock=one_clock)
    converted = []
    for number, place in enumerate(places, 1):
        console.say(f"joining {number}/{len(places)}: {place.name}")
        joined = correlate.join(place.wire, place.traces, ports=port)
        rows = correlate.messages(joined.packets, one_clock=place.one_clock)
        one = trace_events.convert(
            joined.packets,
            rows,
            name=place.name,
            pid=number,
            one_clock=place.one_clock,
            most=packets,
        )
        if one.left_out:
            console.say(f"{place.name}: {one.left_out} packets left out; --packets takes more")
        converted.append(one)
    content = trace_events.document(converted, [place.name for place in places])
    try:
        with Directory.making(perfetto.parent) as folder:
            folder.write(perfetto.name, json.dumps(content, allow_nan=False).encode())
    except OSError as error:
        raise system_error(
            error, f"cannot write {perfetto}", action="Choose another file with --perfetto."
        ) from error
    console.out().print(str(perfetto), markup=False)
