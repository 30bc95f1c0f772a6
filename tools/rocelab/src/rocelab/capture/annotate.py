# SPDX-License-Identifier: GPL-2.0-or-later
"""Copy a capture; add what the analysis and the drivers say about each packet as comments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocelab._core import Annotation
from rocelab.capture import analysis, trace_files
from rocelab.capture.analysis import read_whole
from rocelab.capture.verdict import comments
from rocelab.conditions import check_are_captures, check_new_file, shrunk, sizes, system_error
from rocelab.directory import Directory
from rocelab.errors import RocelabError, UsageError

SCHEMA = "rocelab.annotate/1"
WINDOW = 1 << 17
"""How many packets the copy lags behind the analysis; memory holds this many."""


@dataclass
class Options:
    """How to annotate a capture."""

    ports: Sequence[int] = ()
    """Additional UDP ports of RoCE v2, besides 4791."""
    window: int = WINDOW
    threads: int = 0
    """Worker threads; 0: one per CPU that this process may use."""
    go_back_n: bool = False


def _check(wire: Path, traces: Sequence[Path], output: Path) -> None:
    """Refuse an output that is also an input or not a regular file, and inputs that are streams."""
    for path in (wire, *traces):
        if output.exists() and path.exists() and output.samefile(path):
            raise UsageError(
                f"{output} is an input",
                cause="the annotated copy must not overwrite its source",
                action="Name another file after -o.",
            )
    trace_files.check(wire, traces)
    check_new_file(
        output, "the new capture", action="Name a file after -o.", begins=b"rocelab annotate"
    )


def _annotation_error(error: OSError, wire: Path) -> RocelabError:
    if error.errno is not None and error.filename is None:
        return system_error(error, "the annotated capture could not be written")
    return system_error(
        error,
        f"cannot read {error.filename or wire}",
        action="Name pcap or pcapng files, plain or compressed.",
    )


def annotate(
    wire: Path, traces: Sequence[Path], output: Path, options: Options | None = None
) -> dict[str, Any]:
    """Write `output`; return what `rocelab annotate --json` prints (docs/formats/annotate.md).

    Raises UsageError if an input cannot be used, MissingError if the output cannot be written. In
    both cases an existing `output` is unchanged.
    """
    options = options or Options()
    _check(wire, traces, output)
    try:
        with Directory.open(output.parent) as folder, folder.replacing(output.name) as made:
            return _write(wire, traces, made, options)
    except OSError as error:
        raise system_error(
            error,
            f"cannot write in {output.parent}",
            action="Name a file in a folder that you may write to after -o.",
        ) from error


def _write(wire: Path, traces: Sequence[Path], output: int, options: Options) -> dict[str, Any]:
    for path in (wire, *traces):
        try:
            path.open("rb").close()
        except OSError as error:
            raise _annotation_error(error, path) from error
    before = sizes((wire, *traces))
    # what only the whole capture shows decides how its packets are judged
    whole = read_whole(
        str(wire),
        analysis.Options(ports=options.ports, threads=options.threads, go_back_n=options.go_back_n),
    )
    try:
        core = Annotation(
            str(wire),
            [str(path) for path in traces],
            f"/proc/self/fd/{output}",
            ports=list(options.ports),
            window=options.window,
            threads=options.threads or len(os.sched_getaffinity(0)),
            go_back_n=options.go_back_n,
            looks=whole.plan.looks,
            follow_corrupt=whole.plan.follow_corrupt,
            without_icrc=whole.plan.without_icrc,
            sampled=whole.partial,
            verdict=comments.of_packets(whole.verdict),
            comment=comments.of_capture(whole.verdict),
        )
        while core.step():
            pass
        raw: dict[str, Any] = core.finish()
    except OSError as error:
        raise _annotation_error(error, wire) from error
    names = [str(path) for path in (wire, *traces)]
    check_are_captures(names, raw["errors"])
    for row in raw["errors"]:
        row["file"] = names[row["file"]]
    if raw["packets"] == 0 and raw["errors"]:
        first = raw["errors"][0]
        raise UsageError(
            f"{first['file']} cannot be used",
            cause=first["error"],
            action="Check that it is a complete pcap or pcapng capture; capinfos may say more.",
        )
    raw["errors"] += shrunk((wire, *traces), before)
    if raw["driver"] is not None:
        raw["driver"]["lost"] = dict(zip(names[1:], raw["driver"]["lost"], strict=True))
    return {"schema": SCHEMA, "wire": names[0], "traces": names[1:], **raw}
