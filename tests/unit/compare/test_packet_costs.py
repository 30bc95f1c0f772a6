# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab lines`: the stages of several drivers side by side, as table, figure and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rocelab import units
from rocelab.compare import packet_costs
from rocelab.compare.packet_costs import Costs, Measured, Packet
from rocelab.errors import CellError
from rocelab.report import lines_figure
from rocelab.terminal import console, lines_tables
from study_results import Line, table, write_run

SMALL, LARGE = (Packet("rxe-v2", "send_lat", "SEND", size) for size in (64, 4096))


OLD = {"min": 0, "mean": 100}
"""What figures of older versions have in addition to the cheapest packet."""


def run(
    folder: Path,
    stages: Mapping[str, Mapping[int, float]],
    accelerator: str = "icount",
    figures: Mapping[str, float] = OLD,
) -> Path:
    """A run whose cheapest packets cost that in each stage, and whose mean is 100 more."""
    lines = [
        Line(
            *("send_lat", "rxe-v2", f"stage.{name}.{figure}"),
            {size: value + more for size, value in by_size.items()},
            kind=kind,
            unit="ns",
            exact=True,
        )
        for name, by_size in stages.items()
        for figure, more in figures.items()
        for kind in ("SEND", "ACKNOWLEDGE")
    ]
    return write_run(folder, table(lines, repetitions=1, accelerator=accelerator))


def driver(
    folder: Path,
    name: str,
    crc: float,
    *,
    crc_by: str = "crypto API",
    accelerator: str = "icount",
    figures: Mapping[str, float] = OLD,
) -> Measured:
    """Two rounds of a driver; the first one was disturbed."""
    runs = []
    for number, more in enumerate((9, 0)):
        stages = {
            "tx.bth": {64: 100 + more, 4096: 100},
            "tx.icrc": {64: crc, 4096: 10 * crc},
            "rx.icrc": {64: crc, 4096: 10 * crc},
            "rx.queue": {64: 5000, 4096: 5000},
        }
        runs.append(run(folder / f"{name}{number}", stages, accelerator, figures))
    return Measured(name, crc_by, tuple(runs))


def two(folder: Path) -> Costs:
    """Drivers of two lines."""
    old, new = driver(folder, "6.1", 900), driver(folder, "7.x", 400, crc_by="crc32_le()")
    return packet_costs.of([old, new])


def test_the_cheapest_packet_of_all_rounds(tmp_path: Path) -> None:
    """Of runs of older versions. Waiting and acknowledgements are no part of it."""
    costs = two(tmp_path)
    assert (costs.figure, costs.packet) == ("min", "the cheapest packet")
    assert costs.packets == (SMALL, LARGE)
    assert costs.places == (("tx", "bth"), ("tx", "icrc"), ("rx", "icrc"))
    assert costs.unit == "instructions"
    assert costs.drivers[0].costs[SMALL][("tx", "bth")] == 100
    assert costs.drivers[0].total(SMALL, "tx") == 1000
    assert costs.drivers[1].total(SMALL, "rx") == 400
    share_of_small, share, moves, repeats = costs.sentences
    assert (
        "SEND of 64 bytes over rxe-v2, in instructions: 6.1 1,800 of 1,900 (95 %" in share_of_small
    )
    assert "6.1 18,000 of 18,100 (99 %, crypto API: crc32-pclmul" in share
    assert "7.x 8,000 of 8,100 (99 %, crc32_le())" in share
    assert "64 bytes -1,000" in moves
    assert "4096 bytes -10,000" in moves
    assert costs.drivers[0].spread[SMALL] == {
        ("tx", "bth"): 9,
        ("tx", "icrc"): 0,
        ("rx", "icrc"): 0,
    }
    assert "2 rounds and both ends agree in 10 of 12 values" in repeats
    assert "tx bth of 7.x, rxe-v2 64 bytes: by 9 instructions" in repeats


def test_a_typical_packet(tmp_path: Path) -> None:
    """Where every run has it: one old run among them means the cheapest packet of all."""
    new = driver(tmp_path, "7.x", 400, figures=OLD | {"typical": 5})
    costs = packet_costs.of([driver(tmp_path, "6.1", 900, figures=OLD | {"typical": 5}), new])
    assert (costs.figure, costs.unit) == ("typical", "instructions")
    assert costs.drivers[0].costs[SMALL][("tx", "bth")] == 105
    assert costs.drivers[0].costs[SMALL][("tx", "icrc")] == 905
    assert costs.drivers[0].spread[SMALL][("tx", "bth")] == 9
    page = lines_tables.markdown(costs)
    assert "instructions for a typical packet:" in page
    assert "for a typical packet" in lines_figure.draw(costs, caption=costs.sentences)
    assert lines_tables.document(costs, {"6.1": ["a"], "7.x": ["b"]})["figure"] == "typical"
    mixed = packet_costs.of([driver(tmp_path, "old", 900), new])
    assert mixed.figure == "min"
    assert mixed.drivers[1].costs[SMALL][("tx", "icrc")] == 400


def test_in_real_time_the_mean(tmp_path: Path) -> None:
    """Of the cheapest packet nobody can say that it repeats."""
    figures = OLD | {"typical": 50}
    costs = packet_costs.of([driver(tmp_path, "a", 900, accelerator="kvm", figures=figures)])
    assert (costs.unit, costs.packet) == ("ns", "a packet, mean")
    assert costs.drivers[0].costs[SMALL][("tx", "icrc")] == 1000
    assert len(costs.sentences) == 3


def test_a_driver_without_stages(tmp_path: Path) -> None:
    """It cannot be compared."""
    path = run(tmp_path / "r", {"rx.queue": {64: 5}})
    with pytest.raises(CellError, match="a has no stages"):
        packet_costs.of([Measured("a", "crypto API", (path,))])


def test_what_is_written(tmp_path: Path) -> None:
    """Terminal, Markdown, JSON and figure have the same numbers."""
    costs = two(tmp_path)
    with console.out().capture() as printed:
        console.out().print(lines_tables.render(costs, 80))
    text = printed.get()
    assert "SEND over rxe-v2 (send_lat), instructions for the cheapest packet" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "Instructions are no time" in text
    page = lines_tables.markdown(costs)
    assert "| tx icrc | 900 | 400 | 9,000 | 4,000 |" in page
    assert "| **tx in all** | **1,000** | **500** | **9,100** | **4,100** |" in page
    document = lines_tables.document(costs, {"6.1": ["a"], "7.x": ["b"]})
    assert json.loads(json.dumps(document)) == document
    first = document["drivers"][1]["packets"][0]
    assert (first["stages"]["tx.icrc"], first["spread"]["tx.bth"]) == (400, 9)
    figure = lines_figure.draw(costs, caption=costs.sentences)
    assert ElementTree.fromstring(figure).tag.endswith("svg")
    assert "SEND sent, rxe-v2" in figure
    assert "4,100" in figure


def test_long_names_stay_whole(tmp_path: Path) -> None:
    """A side may be a tree with a commit; each size then has a grid."""
    names = ("7.x", "7.x+tree:~/linux@v7.3-rc7", "7.x+tree:~/linux@v7.2.13")
    costs = packet_costs.of([driver(tmp_path, f"{at}", 900) for at in range(3)])
    costs = replace(
        costs,
        drivers=tuple(
            replace(one, name=name) for one, name in zip(costs.drivers, names, strict=True)
        ),
    )
    for columns in (60, 80):
        with console.out().capture() as printed:
            console.out().print(lines_tables.render(costs, columns))
        text = printed.get()
        assert max(map(len, text.splitlines())) <= columns
        for name in names:
            assert f"{units.size(64)} {name}" in text
            assert f"{units.size(4096)} {name}" in text


def test_a_name_that_is_markup(tmp_path: Path) -> None:
    """A side is a user's path: Markdown and figure show it as text."""
    costs = packet_costs.of([driver(tmp_path, "a", 900), driver(tmp_path, "<b>|x", 800)])
    page = lines_tables.markdown(costs)
    assert "<b>" not in page
    assert "&lt;b&gt;\\|x" in page
    assert "<b>" not in lines_figure.draw(costs, caption=costs.sentences)
