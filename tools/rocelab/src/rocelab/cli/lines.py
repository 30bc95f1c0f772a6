# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab lines`: what does a packet cost in each stage, kernel by kernel?"""

from __future__ import annotations

from pathlib import Path

import click

from rocelab.cli import options
from rocelab.cli.run import Lines
from rocelab.kernel_lines import LINES
from rocelab.terminal import console


@click.command()
@click.argument(
    "sides",
    nargs=-1,
    help="Drivers to measure, by default line:LINE of every kernel line; as for "
    "`rocelab ab`, such as line:7.x+tree:REPOSITORY@COMMIT.",
    metavar="[SIDE]...",
)
@click.option(
    "--plan",
    default="lines",
    help="What to measure: a built-in plan or a TOML file.",
    metavar="PLAN",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1, max=99),
    help="Rounds per driver; by default as the plan says: twice where instructions "
    "are counted, else 15 times.",
    metavar="N",
)
@options.comparison_out
@options.icount
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead (docs/formats/lines.md).")
def lines(
    sides: tuple[str, ...],
    plan: str,
    rounds: int | None,
    out: Path,
    icount: bool,
    as_json: bool,
) -> None:
    """Say what a packet costs in each stage, kernel line by kernel line.

    Each driver is loaded on virtual machines with its kernel, one after the other, and measured
    with the same plan: SENDs of 64 B, 1 KiB and 4 KiB over RoCE v1 and v2. Emulated machines count
    instructions. The folder in --out has the runs, the table as lines.json and lines.md, and the
    figure lines.svg.
    """
    console.say("reading the plan")
    from rocelab.compare import packet_costs
    from rocelab.compare.packet_costs import Measured
    from rocelab.measure import comparison, driver_turns
    from rocelab.measure.testbed_for_plan import move_plan
    from rocelab.plans import plan_file, side
    from rocelab.record import drivers_folder
    from rocelab.record.folder import check_out_dir
    from rocelab.report import lines_figure
    from rocelab.terminal import lines_tables

    chosen = move_plan(plan_file.load(plan), None, icount=icount, native=False)
    driver_turns.check(chosen)
    parsed_sides = [
        side.parse(text) for text in dict.fromkeys(sides or (f"line:{x}" for x in LINES))
    ]
    check_out_dir(out)
    folder, runs = comparison.one_by_one(
        *(chosen, parsed_sides, console.say), out=out, rounds=rounds, progress=Lines()
    )
    measured = [
        Measured(one.text.removeprefix("line:"), driver.crc_by, paths)
        for one, (driver, paths) in zip(parsed_sides, runs, strict=True)
    ]
    costs = packet_costs.of(measured)
    document = lines_tables.document(
        costs, {one.name: [path.name for path in one.runs] for one in measured}
    )
    caption = (*costs.sentences, lines_tables.CAVEAT)
    drivers_folder.write(
        *(folder, "lines", document, lines_figure.draw(costs, caption=caption)),
        table=lines_tables.markdown(costs),
    )
    if as_json:
        console.print_json(document)
    else:
        console.out().print(lines_tables.render(costs, console.out().width))
        console.out().print(str(folder), markup=False)
