# SPDX-License-Identifier: GPL-2.0-or-later
"""Write docs/studies/ from the studies' files: `python -m rocelab.studies.page DIR`.

A test compares the pages with what this gives, so neither can drift.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rocelab.bench.plan import Plan
from rocelab.studies import library, words
from rocelab.studies.study import Study

_HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-or-later -->
<!-- made by `python -m rocelab.studies.page docs/studies`; do not edit -->
"""
_README = """# Studies

Five published comparisons of Ethernet, Soft RoCE, RoCE and InfiniBand, each as a plan that anyone runs, with its published figures and its claims as checks.

```sh
rocelab study list
rocelab study show gaiser2010
rocelab study run gaiser2010 --quick           # two emulated nodes, minutes
rocelab study run gaiser2010 --nodes a,b       # full size, on hosts of your inventory (../howto/hosts.md)
rocelab study report runs/20261121T163000Z-gaiser2010
```

{table}

On hosts of your own the studies need Open MPI and mpibench there: [../howto/hosts.md](../howto/hosts.md).

## What a claim comes to

A run answers each claim: it **holds**, it **does not hold**, or it **cannot be tested here**, because … The answers are in the run's report and on the terminal. They come from `results.parquet` and the plan in `run.json`.

A claim about a quantity is judged at each size by the 95 % confidence interval of the ratio (or difference) between the repetitions of both sides, by Hodges and Lehmann with Mann and Whitney's exact
distribution, as [`rocelab compare`](../howto/compare.md) does: inside the claim's bounds is a yes, outside a no, across a bound neither. It takes four repetitions. What is counted (frames, bytes) is exact and needs no interval.
Where a sentence leaves open what it means ("comparable", "near"), the page says how it is read.

Where a claim names how many ranks there were, together or on a node, a run with others (the quick plans have 2 and 4) cannot test it, whatever it ran on. `--nodes a,b,c,d` has the collectives of ismail2013 and zeng2021 go over more nodes than
two; the other studies are about two.

**What a switch adds** takes two runs, which say how many switches they went through:

```sh
rocelab study run subramoni2009 --nodes a,b --switches 0       # back to back
rocelab study run subramoni2009 --nodes a,b --switches 1       # after you have put a switch between them
rocelab study report runs/20261121T163000Z-subramoni2009 --beside runs/20261121T193000Z-subramoni2009
```

Between hosts of your own `--switches` makes nothing: it writes down what is there. The difference between the two runs, divided by the switches that they differ in, is judged like any other; where what a switch adds
to one transport is set against what it adds to another, the interval joins both differences, each of them surer for it (97.5 %, five repetitions). What else differs between the runs, and may be the reason, is said beside the answers. Two runs do
not interleave, so what drifts in between is in the difference, too. `rocelab report` writes the first run's report without the second again.

**Emulated nodes have no real time.** A run on them answers claims about counts, and says of all others that they cannot be tested there. Published figures are drawn beside measured ones in the report of a run in real time, and never beside emulated ones.

A run of your own answers a study's claims, too, if its plan says `study = "gaiser2010"` and titles its benchmarks (test, label) as the study's plan does.

## Data

Each study is a folder of `tools/rocelab/src/rocelab/studies/data/`: `study.toml` (question, setting, claims), `published.csv` (every number that its text gives, with the place where), `full.toml` and `quick.toml` (plans).
Numbers that a publication only plots are not there: nobody read them off a picture.
"""  # noqa: E501 - Markdown is not wrapped
_COLUMNS = ("benchmark", "transports", "sizes (bytes)", "iterations", "ranks", "method")


def pages() -> dict[str, str]:
    """Every page by its file name."""
    studies = [library.study(name) for name in library.NAMES]
    made = {f"{study.name}.md": _page(study) for study in studies}
    rows = [
        (f"[{study.name}]({study.name}.md)", study.title, f"{study.authors}, {study.year}")
        for study in studies
    ]
    table = "\n".join(_table(("study", "title", "by"), rows))
    return {"README.md": f"{_HEAD}{_README.format(table=table)}", **made}


def _page(study: Study) -> str:
    lines = [
        f"{_HEAD}# {study.name}",
        "",
        f"{study.authors}, *{study.title}*, {study.publication}, {study.year}.",
        *_list("What it asked", study.asked),
        *_list("What it measured on", study.measured_on),
        *_list("How", study.method),
        *_figures(study),
        *_list("What its text does not say", study.silent),
        *_list("Its plan here", study.here),
    ]
    for quick in (False, True):
        lines += _plan(library.plan(study.name, quick=quick), study, quick=quick)
    return "\n".join([*lines, *_claims(study), ""])


def _list(heading: str, items: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {heading}", "")
    yield from (f"- {item}" for item in items)


def _figures(study: Study) -> Iterator[str]:
    yield from ("", "## Published figures", "")
    yield "Every number that the text gives:"
    yield ""
    yield from _table(
        ("system", "here", "quantity", "figure", "where"),
        [
            (
                figure.system,
                " ".join(filter(None, (figure.transport, figure.test))) or "\N{EN DASH}",
                f"{figure.metric}{', best over all sizes' if figure.statistic == 'best' else ''}",
                words.figure(figure),
                figure.source,
            )
            for figure in study.figures
        ],
    )


def _plan(plan: Plan, study: Study, *, quick: bool) -> Iterator[str]:
    word = "Quick" if quick else "Full size"
    option = " --quick" if quick else ""
    probes = ", ".join(plan.probes) or "none"
    yield from ("", f"### {word}: `rocelab study run {plan.study}{option}`", "")
    yield (
        f"{plan.repetitions} repetitions, whose {study.averaging} stands beside published figures; "
        f"MTU {plan.testbed.mtu}, probes: {probes}."
    )
    yield ""
    rows = [dict(words.benchmark(benchmark, plan)) for benchmark in plan.benchmarks]
    yield from _table(_COLUMNS, [tuple(row[column] for column in _COLUMNS) for row in rows])


def _claims(study: Study) -> Iterator[str]:
    yield from ("", "## Its claims, as checks")
    for claim in study.claims:
        yield from ("", f"### {claim.name}", "")
        yield f"> {claim.text}"
        yield ""
        yield f"{claim.source}."
        yield ""
        yield f"- Check: {words.check(claim.check)}."
        if claim.reading:
            yield f"- Read as: {claim.reading}"
        if claim.needs:
            yield f"- Cannot be answered by a run: {claim.needs}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
