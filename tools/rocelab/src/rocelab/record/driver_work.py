# SPDX-License-Identifier: GPL-2.0-or-later
"""What the driver does for one message, by kind of work: headers, ICRC, copies, and the rest.

The stages of all packets of a message at all nodes, acknowledgements included, are added by kind.
What the driver cost beyond them lies between its stages: tasks, queues and locks.
"""

from __future__ import annotations

import polars as pl

from rocelab import accelerators, metrics, stage_table

BETWEEN = "between"
"""The driver's work that no stage covers."""
KINDS = ("headers", "icrc", "copy", "buffers", "requests", BETWEEN)
"""In the order of a table."""
CAPSULES = ("headers", "icrc")
"""The kinds that are encapsulation and decapsulation."""
_OF_CLASS = {"header": "headers", "memory": "buffers", "bookkeeping": "requests"}
_OF_STAGE = {
    (stage.direction, stage.name): stage.name
    if stage.name in ("icrc", "copy")
    else _OF_CLASS[stage.kind]
    for stage in stage_table.STAGES
    if stage.kind in _OF_CLASS
}


def by_kind(rows: pl.DataFrame, driver: float) -> dict[str, float]:
    """Split the driver's cost of one message (`driver`) by kind of work, in its unit.

    `rows` are a step's rows of results.parquet, of all nodes and repetitions. Empty unless each
    stage and the number of messages are known. Stages are of typical packets where instructions are
    counted, else means.
    """
    messages = float(rows.filter(metric=metrics.MESSAGES)["value"].sum())
    if not messages:
        return {}
    counts = rows.height and accelerators.of(rows["accelerator"][0]).counts_instructions
    figure = metrics.TYPICAL if counts else metrics.MEAN
    known: dict[tuple[object, ...], dict[str, float]] = {}
    keys = ("node", "repetition", "kind", "metric", "value")
    for node, repetition, opcode, metric, value in rows.select(keys).iter_rows():
        stage = metrics.Stage.parse(metric)
        if stage and (stage.direction, stage.stage) in _OF_STAGE:
            place = (stage.direction, stage.stage, node, repetition, opcode)
            known.setdefault(place, {})[stage.figure] = value
    work = dict.fromkeys(KINDS, 0.0)
    for (direction, name, *_), figures in known.items():
        if figure not in figures:
            return {}
        work[_OF_STAGE[str(direction), str(name)]] += figures[figure] * figures["count"] / messages
    if not known:
        return {}
    work[BETWEEN] = driver - sum(work.values())
    return work
