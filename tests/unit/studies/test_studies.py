# SPDX-License-Identifier: GPL-2.0-or-later
"""Published studies: their data, a run's answers to their claims, and what is drawn."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import html_tree
from command_line import in_process as rocelab
from rocelab import units
from rocelab.cli.testbed import Provider
from rocelab.errors import UsageError
from rocelab.measure.testbed_for_plan import move_plan
from rocelab.plans import plan_file
from rocelab.plans.catalog import TESTS, TRANSPORTS
from rocelab.record import read
from rocelab.report import build
from rocelab.report.study_report import results
from rocelab.studies import library, other_testbed, page, planning, study_file, words
from rocelab.studies.answers import Answer, answers
from rocelab.studies.claims import (
    Adds,
    Average,
    Check,
    Compare,
    Dips,
    Falls,
    Operand,
    Stalls,
    Study,
)
from rocelab.studies.samples import Ranks, Results, usable
from rocelab.studies.verdict import Verdict
from rocelab.terminal import study_answers
from study_results import Line, table, write_run

DOCS = Path(__file__).parents[3] / "docs" / "studies"
HOLDS, DOES_NOT_HOLD, NOT_DECIDED, UNTESTED = Verdict
SIZES = (1, 128, 8192, 131072)


def test_a_page_has_all_claims_and_figures_of_its_study() -> None:
    """git has no such page: they are generated."""
    made = page.pages()
    assert set(made) == {f"{name}.md" for name in library.NAMES}
    for name in library.NAMES:
        study, text = library.study(name), made[f"{name}.md"]
        assert re.findall(r"^### ([\w-]+)$", text, re.MULTILINE) == [c.name for c in study.claims]
        table = text.split("## Published figures\n")[1].split("\n## ")[0]
        assert table.count("\n| ") == 1 + len(study.figures)
        assert max(len(line) for line in text.splitlines() if line[:1] not in "|#<") <= 120


def test_the_overview_lists_the_studies() -> None:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == set(library.NAMES)


@pytest.mark.parametrize("name", library.NAMES)
def test_show_prints_what_a_page_says(name: str) -> None:
    """All that is asked, measured, quoted and checked."""
    shown = re.sub(r"\s+", "", rocelab("study", "show", name).stdout)
    study = library.study(name)
    said = [*study.asked, *study.measured_on, *study.method, *study.silent, *study.here]
    said += [words.check(claim.check) for claim in study.claims]
    said += [f"{claim.name}: " for claim in study.claims]
    said += [claim.reading for claim in study.claims if claim.reading]
    assert [text for text in said if re.sub(r"\s+", "", text) not in shown] == []


@pytest.mark.parametrize("name", library.NAMES)
def test_every_published_number_is_in_its_quotation(name: str) -> None:
    """A figure's quotation contains its value, or both ends of its range."""
    for figure in library.study(name).figures:
        for value in {figure.low, figure.high}:
            assert re.search(rf"(?<![\d.]){re.escape(f'{value:g}')}(?![\d.]\d)", figure.says)
        assert figure.transport in {"", *TRANSPORTS}


@pytest.mark.parametrize("name", library.NAMES)
def test_quick_and_full_plans(name: str) -> None:
    """Quick: two emulated nodes, 2 ranks (4 for one test), up to 16 KiB. Full: ten repetitions."""
    quick, full = library.plan(name, quick=True), library.plan(name, quick=False)
    assert quick.study == full.study == name
    assert full.repetitions == 10
    assert quick.testbed.provider == "qemu"
    assert full.testbed.provider == "ssh"
    assert max(max(b.sizes) for b in quick.benchmarks) <= 16384
    ranks = [b.mpi.ranks for b in quick.benchmarks if b.mpi]
    assert set(ranks) <= {2, 4}
    assert ranks.count(4) <= 1
    assert {(b.tool, b.title) for b in quick.benchmarks} <= {
        (b.tool, b.title) for b in full.benchmarks
    }


def operands_of(check: Check) -> list[Operand]:
    match check:
        case Compare(first=first, second=second):
            # words.pair names the two sides by the one property that differs
            differ = [
                first.benchmark != second.benchmark,
                first.transport != second.transport,
                first.metric != second.metric,
            ]
            assert sum(differ) == 1
            return [first, second]
        case Average():
            return [replace(o, test=t) for o in (check.first, check.second) for t in check.tests]
        case Falls() | Dips():
            return [check.operand]
        case Adds(operand=of):
            beyond = check.beyond or of
            # words.quantity assumes this
            assert (of.test, of.metric) == (beyond.test, beyond.metric)
            assert of.metric.startswith("latency")
            return [of, beyond]
    return []


def operands(study: Study) -> list[Operand]:
    return [operand for claim in study.claims for operand in operands_of(claim.check)]


@pytest.mark.parametrize("name", library.NAMES)
def test_claims_are_about_what_the_plan_measures(name: str) -> None:
    plan = library.plan(name, quick=False)
    titles = {f"{b.tool} {b.title}": b for b in plan.benchmarks}
    study = library.study(name)
    assert len({claim.name for claim in study.claims}) == len(study.claims)
    for operand in operands(study):
        benchmark = titles[operand.benchmark]
        assert operand.transport in TRANSPORTS
        quantity = TESTS[benchmark.tool, benchmark.test].quantity
        if operand.metric in ("latency.mean", "bandwidth"):
            assert operand.metric.startswith(quantity)
        elif operand.metric.startswith("cpu."):
            assert "rxecpu" in plan.probes
            # an adapter's messages and bytes are not counted
            assert TRANSPORTS[operand.transport].family == "tcp" or (
                TRANSPORTS[operand.transport].by != "adapter"
                or operand.metric in ("cpu.per_packet", "cpu.utilization")
            )
        assert operand.transport in benchmark.transports
    for claim in study.claims:
        if isinstance(claim.check, Stalls):
            assert {f"{claim.check.tool} {test}" for test in claim.check.tests} <= set(titles)


def gaiser(
    lines: list[Line], *, repetitions: int = 6, accelerator: str = "native"
) -> dict[str, Answer]:
    results = Results(table(lines, repetitions=repetitions, accelerator=accelerator))
    return {a.claim.name: a for a in answers(library.study("gaiser2010"), results)}


def bandwidths(soft: float, *, largest: int = 131072, transport: str = "hw-v1") -> list[Line]:
    sizes = [size for size in SIZES if size <= largest]
    return [
        Line("bw", "rxe-v1", "bandwidth", dict.fromkeys(sizes, soft)),
        Line("bw", transport, "bandwidth", dict.fromkeys(sizes, 100.0)),
    ]


@pytest.mark.parametrize(
    ("soft", "verdict"),
    [(100, HOLDS), (80, HOLDS), (125, HOLDS), (70, DOES_NOT_HOLD), (78, NOT_DECIDED)],
)
def test_a_ratio_against_its_bounds(soft: float, verdict: Verdict) -> None:
    """The interval is within the bounds and their tolerance, outside, or crosses a limit."""
    answer = gaiser(bandwidths(soft))["soft-roce-like-roce"]
    assert answer.verdict is verdict, answer.because


def test_an_untested_claim_has_a_reason() -> None:
    name = "soft-roce-like-roce"
    assert "nothing over hw-v1" in gaiser(bandwidths(100, transport="tcp"))[name].because
    assert "end at 8192 bytes" in gaiser(bandwidths(100, largest=8192))[name].because
    few = gaiser(bandwidths(100), repetitions=3)[name]
    assert few.verdict is NOT_DECIDED
    assert "3 repetitions give no confidence interval; about 3 more would decide" in few.because
    for accelerator in ("tcg", "icount", "quantum"):
        emulated = gaiser(bandwidths(100), accelerator=accelerator)[name]
        assert emulated.verdict is UNTESTED
        assert f"emulated ({accelerator})" in emulated.because
        assert not re.search(r"rxe-v1 /|\d\.\d", emulated.because)


def test_claims_about_the_best() -> None:
    def lines(tcp: dict[int, float]) -> list[Line]:
        return [
            Line("latency", "hw-v1", "latency.mean", {1: 1000.0, 128: 1000.0}),
            Line("latency", "rxe-v1", "latency.mean", {1: 4000.0, 128: 4500.0}),
            Line("latency", "tcp", "latency.mean", tcp),
        ]

    fast = gaiser(lines({1: 6000, 128: 5800}))
    assert fast["roce-speedup-latency"].verdict is HOLDS
    assert fast["soft-roce-latency"].verdict is HOLDS
    slow = gaiser(lines({1: 3000, 128: 5000}))
    assert slow["roce-speedup-latency"].verdict is DOES_NOT_HOLD
    assert slow["soft-roce-latency"].verdict is DOES_NOT_HOLD


def test_a_difference_in_ns() -> None:
    def answer(roce: float) -> Verdict:
        lines = [
            Line("latency", "ib", "latency.mean", {128: 2000.0}),
            Line("latency", "hw-v1", "latency.mean", {128: roce}),
        ]
        return gaiser(lines)["ib-a-microsecond-faster"].verdict

    assert answer(2500) is HOLDS
    assert answer(3500) is DOES_NOT_HOLD
    assert answer(3000) is HOLDS
    assert answer(3100) is NOT_DECIDED


def test_a_claim_about_counts_needs_no_real_time() -> None:
    """Soft RoCE locked up in 2010; emulated nodes can show whether it still does."""
    lines = [Line(test, "rxe-v1", "bandwidth", {1: 5.0}) for test in ("bw", "bibw")]
    for accelerator in ("tcg", "native"):
        answer = gaiser(lines, repetitions=2, accelerator=accelerator)["soft-roce-locks-up"]
        assert answer.verdict is DOES_NOT_HOLD
        assert "2 of 2 repetitions of bw" in answer.because
    assert gaiser(lines[:1])["soft-roce-locks-up"].verdict is UNTESTED


AS_PLANNED = {"mpibench bcast-few": Ranks(16, 8), "mpibench multi_lat": Ranks(8, 4)}


def judged(
    study: str,
    name: str,
    lines: list[Line],
    ranks: Mapping[str, Ranks] = AS_PLANNED,
    **how: object,
) -> Answer:
    results = Results(table(lines, **how), ranks=ranks)  # type: ignore[arg-type]
    return next(a for a in answers(library.study(study), results) if a.claim.name == name)


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ({2: 0.9, 1024: 0.8, 16384: 0.5}, HOLDS),
        ({2: 0.5, 1024: 0.8, 16384: 0.9}, DOES_NOT_HOLD),
        ({2: 0.9, 1024: 0.95, 16384: 0.5}, DOES_NOT_HOLD),
        ({2: 0.9}, UNTESTED),
    ],
)
def test_cpu_utilization_falls_with_size(shares: dict[int, float], verdict: Verdict) -> None:
    """It falls, rises, rises in between, or has only one size."""
    line = Line(
        *("send_lat", "tcp", "cpu.utilization", shares),
        kind="per_core",
        unit="1",
        tool="perftest",
    )
    assert judged("subramoni2009", "tcp-cpu-falls", [line]).verdict is verdict
    emulated = judged("subramoni2009", "tcp-cpu-falls", [line], accelerator="tcg")
    assert emulated.verdict is UNTESTED
    assert "emulated (tcg)" in emulated.because


def test_counted_instructions_are_no_time() -> None:
    """What a processor worked is answered by their number where that was counted."""

    def answer(marginal: float, accelerator: str, unit: str) -> Verdict:
        lines = [
            Line("send_lat", "rxe-v1", metric, {64: value}, kind, unit, tool="perftest")
            for metric, kind, value in (
                ("cpu.per_message", "marginal_kernel", 10_000.0),
                ("encapsulation.mean", "SEND", marginal),
            )
        ]
        name = "encapsulation-is-marginal-work"
        return judged("subramoni2009", name, lines, accelerator=accelerator).verdict

    assert answer(500, "icount", "instructions") is HOLDS
    assert answer(2000, "icount", "instructions") is DOES_NOT_HOLD
    assert answer(500, "native", "ns") is HOLDS
    assert answer(500, "tcg", "ns") is UNTESTED


def test_a_broadcast_that_switches_its_algorithm() -> None:
    def answer(at_1_mib: float, top: int = 1 << 20) -> Answer:
        sizes = {1 << 18: 1e6, 1 << 19: 2e6, top: at_1_mib}
        line = Line("bcast-few", "tcp", "latency.mean", sizes, kind="collective", unit="ns")
        return judged("ismail2013", "bcast-switches-at-1-mib-16", [line])

    assert answer(1.9e6).verdict is HOLDS
    assert answer(4e6).verdict is DOES_NOT_HOLD
    small = answer(4e6, top=1 << 19)
    assert small.verdict is UNTESTED
    assert "end at 524288 bytes, before 1048576" in small.because
    above = answer(4e6, top=1 << 21)
    assert above.verdict is UNTESTED
    assert "no size of 1048576 bytes" in above.because


def test_a_claim_about_16_ranks_is_not_judged_on_two() -> None:
    """Nor is it judged if the number of ranks is unknown."""
    line = Line("bcast-few", "tcp", "latency.mean", {1 << 19: 2e6, 1 << 20: 1e6})

    def answer(ranks: dict[str, Ranks]) -> Answer:
        return judged("ismail2013", "bcast-switches-at-1-mib-16", [line], ranks)

    assert answer({"mpibench bcast-few": Ranks(16, 8)}).verdict is HOLDS
    two = answer({"mpibench bcast-few": Ranks(2, 1)})
    assert two.verdict is UNTESTED
    assert two.because == "because mpibench bcast-few ran with 2 ranks, but the claim is about 16"
    unknown = answer({"mpibench bcast-many": Ranks(16, 8)})
    assert unknown.verdict is UNTESTED
    assert "does not say how many ranks" in unknown.because


def test_a_claim_about_24_ranks_per_node() -> None:
    lines = [
        Line("allreduce", t, "latency.mean", {8: ns}) for t, ns in (("ib", 100.0), ("hw-v2", 92.0))
    ]

    def answer(ranks: Ranks) -> Answer:
        return judged("zeng2021", "allreduce-shorter", lines, {"mpibench allreduce": ranks})

    assert answer(Ranks(168, 24)).verdict is HOLDS
    two = answer(Ranks(48, 24))
    assert two.verdict is UNTESTED
    assert two.because == "because mpibench allreduce ran with 48 ranks, but the claim is about 168"
    spread = answer(Ranks(168, 42)).because
    assert spread.endswith("ran with 42 ranks per node, but the claim is about 24")


@pytest.mark.parametrize("name", library.NAMES)
def test_only_a_full_plan_has_the_ranks_that_claims_name(name: str) -> None:
    """So no such claim is judged on a quick plan."""
    study = library.study(name)
    for quick in (False, True):
        plan = library.plan(name, quick=quick)
        if name == "zeng2021" and not quick:
            plan = other_testbed.on_nodes(plan, study, 7)
        ran = {
            f"{b.tool} {b.title}": Ranks(b.mpi.ranks, b.mpi.ranks_per_node)
            for b in plan.benchmarks
            if b.mpi
        }
        for operand in operands(study):
            if operand.ranks is None and operand.ranks_per_node is None:
                continue
            lines = [Line(operand.test, operand.transport, operand.metric, {1 << 20: 1e6})]
            series = usable(Results(table(lines), ranks=ran), operand)
            assert isinstance(series, str) is quick


@pytest.mark.parametrize("name", ["ismail2013", "zeng2021"])
def test_a_quick_run_on_real_hosts(tmp_path: Path, name: str) -> None:
    """No claim about ranks is judged even on a native run with six repetitions."""
    plan = library.plan(name, quick=True)
    lines = [
        Line(b.title, transport, "latency.mean", {1 << 19: 2e6, 1 << 20: 1e6})
        for b in plan.benchmarks
        for transport in ("tcp", "ib", "hw-v2")
    ]
    folder = write_run(tmp_path / "run", table(lines), study=name)
    meta = json.loads((folder / "run.json").read_text())
    meta["plan"] = plan.to_dict()
    (folder / "run.json").write_text(json.dumps(meta))
    study = library.study(name)
    answered = answers(study, results(read.load(folder)))
    about = [
        a for a in answered if any(o.ranks or o.ranks_per_node for o in operands_of(a.claim.check))
    ]
    assert about
    assert {a.verdict for a in about} == {UNTESTED}
    reasons = [a.because for a in about if "no " not in a.because]
    assert reasons
    pattern = r"ran with ([24] ranks|1 rank)( per node)?, but the claim"
    assert all(re.search(pattern, reason) for reason in reasons)


def test_a_study_over_more_than_two_nodes() -> None:
    """ismail2013 had 8 ranks per node, zeng2021 had 24; gaiser2010 is about two nodes."""

    def placed(name: str, nodes: int, *, quick: bool = False) -> dict[str, tuple[int, int, int]]:
        there = move_plan(library.plan(name, quick=quick), Provider.SSH, icount=False, native=False)
        plan = other_testbed.on_nodes(there, library.study(name), nodes)
        assert plan.testbed.nodes == nodes
        assert plan_file.from_dict(json.loads(json.dumps(plan.to_dict())), "run.json") == plan
        return {
            b.title: (b.mpi.ranks, b.mpi.ranks_per_node, b.nodes) for b in plan.benchmarks if b.mpi
        }

    assert placed("ismail2013", 2)["alltoall-many"] == (32, 16, 2)
    three = placed("ismail2013", 3)
    assert (three["alltoall-few"], three["alltoall-many"]) == ((16, 8, 2), (32, 11, 3))
    for nodes in (4, 8):
        four = placed("ismail2013", nodes)
        assert (four["alltoall-few"], four["alltoall-many"]) == ((16, 8, 2), (32, 8, 4))
    quick = placed("ismail2013", 4, quick=True)
    assert (quick["bcast-few"], quick["alltoall-many"]) == ((2, 1, 2), (4, 1, 4))
    seven = placed("zeng2021", 7)
    assert (seven["allreduce"], seven["latency"]) == ((168, 24, 7), (2, 1, 2))
    with pytest.raises(UsageError, match="gaiser2010 is about 2 nodes, but 3 are named"):
        placed("gaiser2010", 3)
    with pytest.raises(UsageError, match="more than 8"):
        placed("ismail2013", 9)


def test_all_named_nodes_are_used(tmp_path: Path) -> None:
    """It logs in to each of them; here none answers."""
    hosts = "".join(
        f'[[host]]\nname = "{name}"\nhost = "127.0.0.1"\nport = 1\nnetdev = "eth1"\n'
        for name in "abcd"
    )
    (tmp_path / "hosts.toml").write_text(hosts)
    inventory = ("--inventory", str(tmp_path / "hosts.toml"))
    four = rocelab("study", "run", "ismail2013", "--nodes", "a,b,c,d", *inventory)
    assert four.returncode == 4
    assert "logging in to a and b and c and d" in four.stderr
    refused = rocelab("study", "run", "kaur2014", "--nodes", "a,b,c", *inventory)
    assert refused.returncode == 2
    assert "kaur2014 is about 2 nodes" in refused.stderr


def test_a_claim_that_a_quantity_does_not_dip() -> None:
    """The study says so about 16 cores over InfiniBand."""

    def answer(at_1_mib: float) -> Verdict:
        sizes = {1 << 19: 2e6, 1 << 20: at_1_mib}
        line = Line("bcast-few", "ib", "latency.mean", sizes, kind="collective", unit="ns")
        return judged("ismail2013", "bcast-does-not-switch-16-ib", [line]).verdict

    assert answer(4e6) is HOLDS
    assert answer(1.5e6) is DOES_NOT_HOLD


def test_a_studys_averaging(tmp_path: Path) -> None:
    """kaur2014 gives the mean of ten runs, so its figures are compared with means."""
    results = table(
        [Line("latency-osu", "rxe-v1", "latency.mean", {8192: 60000.0}, exact=True)],
        repetitions=10,
    )
    one_slow = pl.when(pl.col("repetition") == 10).then(160000.0).otherwise(pl.col("value"))
    folder = write_run(tmp_path / "run", results.with_columns(value=one_slow), study="kaur2014")
    page = html_tree.parse(build(folder).read_text(encoding="utf-8"))
    [section] = page.all("section", id="study")
    (card,) = section.all("div", class_="card")
    rows = {row["system"]: row for row in card.all("table")[0].table()}
    assert rows["Soft RoCE, OSU, published"]["figure"] == "67.363"
    assert float(rows["rxe-v1"]["figure"]) == 70
    assert rows["rxe-v1"]["from"] == "mean of this run's repetitions"
    others = {library.study(name).averaging for name in library.NAMES if name != "kaur2014"}
    assert others == {"median"}


def test_one_emulated_repetition_tests_a_claim_about_frames() -> None:
    """The number of frames for an MTU needs neither real time nor an interval."""

    def answer(small: float) -> Verdict:
        lines = [
            Line(
                "write_bw-mtu1024",
                "rxe-v1",
                "wire.data_frames",
                {4096: 100.0},
                "roce",
                "1",
                True,
                "perftest",
            ),
            Line(
                "write_bw-mtu256",
                "rxe-v1",
                "wire.data_frames",
                {4096: small},
                "roce",
                "1",
                True,
                "perftest",
            ),
        ]
        how = {"accelerator": "tcg", "repetitions": 1}
        return judged("subramoni2009", "mtu-limits-a-packet", lines, **how).verdict

    assert answer(400) is HOLDS
    assert answer(100) is DOES_NOT_HOLD


SWITCHED = "subramoni2009"


def through(
    switches: int | None, latencies: dict[str, float], *, study: str = SWITCHED, **how: object
) -> Results:
    """A run's latencies (ns) by transport, at two sizes that the claims are about."""
    tool, test = ("mpibench", "latency") if study == "zeng2021" else ("perftest", "send_lat")
    lines = [
        Line(test, t, "latency.mean", {64: ns, 1024: ns}, tool=tool) for t, ns in latencies.items()
    ]
    return Results(table(lines, **how), switches)  # type: ignore[arg-type]


def by_two(name: str, first: Results, second: Results | None, study: str = SWITCHED) -> Answer:
    answered = answers(library.study(study), first, second)
    return next(a for a in answered if a.claim.name == name)


@pytest.mark.parametrize(
    ("ib", "roce", "of_ib", "of_roce"),
    [
        (1250, 2750, HOLDS, HOLDS),
        (1100, 4000, DOES_NOT_HOLD, DOES_NOT_HOLD),
        (1000, 1900, DOES_NOT_HOLD, DOES_NOT_HOLD),
        (1350, 3250, NOT_DECIDED, NOT_DECIDED),
    ],
)
def test_what_a_switch_adds(ib: float, roce: float, of_ib: Verdict, of_roce: Verdict) -> None:
    """Within the bounds, above or below them, zero or negative, and across a bound."""
    without = through(0, {"ib": 1000.0, "hw-v1": 2000.0})
    with_one = through(1, {"ib": ib, "hw-v1": roce})
    for pair in ((without, with_one), (with_one, without)):
        for name, verdict in (("ib-switch-latency", of_ib), ("ethernet-switch-latency", of_roce)):
            answer = by_two(name, *pair)
            assert answer.verdict is verdict, answer.because
    assert "claimed 500 to 1000 ns (± 250 ns, half of the paper's own range)" in answer.because
    if verdict is NOT_DECIDED:
        assert "6 repetitions do not decide at 64 bytes" in answer.because


def test_the_difference_is_divided_by_the_switches() -> None:
    added = through(0, {"ib": 1000.0}), through(3, {"ib": 1750.0})
    answer = by_two("ib-switch-latency", *added)
    assert answer.verdict is HOLDS
    assert "for 3 switches, divided by 3" in answer.because


def test_two_runs_that_cannot_show_what_a_switch_adds() -> None:
    def because(first: Results, second: Results | None) -> str:
        answer = by_two("ib-switch-latency", first, second)
        assert answer.verdict is UNTESTED
        return answer.because

    one, two = through(0, {"ib": 1000.0}), through(1, {"ib": 1250.0})
    assert "--beside" in because(one, None)
    assert "the same number of switches, 1" in because(two, two)
    assert "does not say how many" in because(one, through(None, {"ib": 1250.0}))
    assert "nothing over ib" in because(one, through(1, {"tcp": 1250.0}))
    three = [through(hops, {"ib": 1000.0 + 250 * hops}, repetitions=3) for hops in (0, 1)]
    few = by_two("ib-switch-latency", *three)
    assert few.verdict is NOT_DECIDED
    assert "no confidence interval" in few.because
    virtual = through(1, {"ib": 1250.0}, accelerator="kvm")
    assert "measured under native and kvm" in because(one, virtual)
    for accelerator in ("tcg", "icount"):
        emulated = [
            through(hops, {"ib": 1000.0 + 250 * hops}, accelerator=accelerator) for hops in (0, 1)
        ]
        assert f"emulated ({accelerator})" in because(emulated[0], emulated[1])
        for pair in ((one, emulated[1]), (emulated[0], two)):
            reason = because(*pair)
            assert accelerator in reason
            assert not re.search(r"\d\d", reason)


@pytest.mark.parametrize(
    ("roce", "verdict"), [(3250, HOLDS), (2800, DOES_NOT_HOLD), (3550, NOT_DECIDED)]
)
def test_a_hop_costs_roce_half_a_microsecond_more(roce: float, verdict: Verdict) -> None:
    study, name = "zeng2021", "half-a-microsecond-a-hop"
    without = through(0, {"ib": 1000.0, "hw-v2": 1000.0}, study=study)
    with_three = through(3, {"ib": 1750.0, "hw-v2": roce}, study=study)
    answer = by_two(name, without, with_three, study)
    assert answer.verdict is verdict, answer.because


def test_two_runs_on_a_terminal_and_in_the_report(tmp_path: Path) -> None:
    def written(name: str, switches: int | None, study: str = SWITCHED) -> str:
        latency = 1000.0 + 250.0 * (switches or 0)
        folder = write_run(tmp_path / name, through(switches, {"ib": latency}).table, study=study)
        meta = json.loads((folder / "run.json").read_text())
        meta["plan"]["testbed"] = {"provider": "ssh", "switches": switches}
        meta["nodes"]["n1"]["kernel"] = f"6.12 <{name}>"
        (folder / "run.json").write_text(json.dumps(meta))
        return str(folder)

    one, two, other = written("a", 0), written("b", 1), written("c", 1, "zeng2021")
    answer = rocelab("study", "report", one, "--beside", two)
    assert answer.returncode == 0, answer.stderr
    assert "holds  ib-switch-latency" in answer.stdout.splitlines()
    assert "n1 kernel: '6.12 <a>' and '6.12 <b>'" in answer.stdout
    assert max(map(len, answer.stdout.splitlines()[:-1])) <= 80
    page = html_tree.parse((tmp_path / "a" / "report.html").read_text(encoding="utf-8"))
    [section] = page.all("section", id="study")
    assert "this one (back to back)" in section.text
    assert "(through 1)" in section.text
    assert "n1 kernel: '6.12 <a>' and '6.12 <b>'" in section.text
    rows = [row for row in section.all("table")[0].table() if "DDR IB switch" in row["claim"]]
    assert [row["here"] for row in rows] == ["holds"]
    alone = rocelab("study", "report", one)
    assert "cannot be tested here  ib-switch-latency" in alone.stdout.splitlines()
    refused = rocelab("study", "report", one, "--beside", other)
    assert refused.returncode == 2
    assert "belongs to study zeng2021" in refused.stderr
    unknown = rocelab("study", "report", one, "--beside", written("d", None))
    assert "does not say how many switches" in re.sub(r"\s+", " ", unknown.stdout)


def test_one_library_cannot_test_claims_about_two() -> None:
    """The answer gives the difference between the methods, without a verdict."""
    lines = [
        Line(f"bw-{method}", "rxe-v1", "bandwidth", {16384: value})
        for method, value in (("osu", 487e6), ("imb", 130e6))
    ]
    answer = judged("kaur2014", "soft-roce-bandwidth-osu-better", lines)
    assert answer.verdict is UNTESTED
    assert "rocelab runs only one library" in answer.because
    assert "This run alone gives: bw-osu / bw-imb 3.7" in answer.because
    emulated = judged("kaur2014", "soft-roce-bandwidth-osu-better", lines, accelerator="tcg")
    assert "bw-osu" not in emulated.because


def report(folder: Path, accelerator: str) -> html_tree.Element:
    lines = [
        *bandwidths(120e6),
        Line("latency", "rxe-v1", "latency.mean", {1: 4000.0, 128: 4500.0}),
    ]
    write_run(folder, table(lines, accelerator=accelerator), study="gaiser2010")
    return html_tree.parse(build(folder).read_text(encoding="utf-8"))


def test_published_figures_next_to_measured_ones(tmp_path: Path) -> None:
    page = report(tmp_path / "run", "native")
    [section] = page.all("section", id="study")
    latency, bandwidth = section.all("div", class_="card")
    rows = {row["system"]: row["figure"] for row in latency.all("table")[0].table()}
    assert rows["Soft RoCE, published"] == "11.6"
    assert float(rows["rxe-v1"]) == pytest.approx(4, rel=0.01)
    [judged] = [table for table in latency.all("table") if "Claims" in table.text]
    assert "Soft RoCE is comparable" in judged.text
    # measured over size, and what the paper says as lines of no size
    alts = " ".join(svg.attributes.get("aria-label", "") for svg in latency.all("svg"))
    assert f"rxe-v1, {units.size(128)}: " in alts
    assert "Soft RoCE: 11.6 µs, published" in alts
    rows = {row["system"]: row["figure"] for row in bandwidth.all("table")[0].table()}
    assert rows["IB QDR, published"] == "3024.8"
    assert float(rows["rxe-v1"]) == pytest.approx(120, rel=0.01)


@pytest.mark.parametrize("accelerator", ["tcg", "icount", "quantum"])
def test_published_figures_are_not_shown_next_to_emulated_ones(
    tmp_path: Path, accelerator: str
) -> None:
    """The page has no such figure and no published number; the text says why."""
    page = report(tmp_path / "run", accelerator)
    [section] = page.all("section", id="study")
    assert not section.all("div", class_="card")
    assert "not drawn here" in section.text
    assert f"emulated ({accelerator})" in section.text
    for number in ("1.96", "3024.8", "11.6", "21.09", "1142.7", "1204.1"):
        assert number not in page.text


def test_a_run_of_no_study_has_no_claims(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", table(bandwidths(100)))
    assert "Claims of" not in build(folder).read_text(encoding="utf-8")
    answer = rocelab("study", "report", str(folder))
    assert answer.returncode == 2
    assert "belongs to no study" in answer.stderr


def test_answers_on_a_terminal(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", table(bandwidths(100)), study="gaiser2010")
    answer = rocelab("study", "report", str(folder))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == str(folder / "report.html")
    lines = answer.stdout.splitlines()[:-1]
    assert max(map(len, lines)) <= 80
    assert "holds  soft-roce-like-roce" in lines
    assert "cannot be tested here  roce-near-ib-latency" in lines


def test_show_prints_a_complete_study() -> None:
    for name in library.NAMES:
        study = library.study(name)
        console = Console(width=80, file=io.StringIO(), record=True)
        console.print(study_answers.whole(study, [library.plan(name, quick=True)]))
        text = console.export_text()
        assert max(map(len, text.splitlines())) <= 80
        flat = re.sub(r"\s+", " ", text)
        assert all(claim.text in flat for claim in study.claims)
    assert "Claims" in rocelab("study", "show", library.NAMES[0]).stdout
    listed = rocelab("study", "list").stdout
    assert all(name in listed for name in library.NAMES)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["study", "show", "kaur1999"], "there is no study 'kaur1999'"),
        (["study", "run", "gaiser2010", "--transports", "tcp,ipx"], "has no transport 'ipx'"),
        (["study", "run", "gaiser2010", "--nodes", "a,b", "--provider", "qemu"], "provider ssh"),
        (["study", "run", "gaiser2010", "--inventory", "/nonexistent"], "/nonexistent"),
        (["study", "report", "/nonexistent"], "/nonexistent"),
    ],
)
def test_bad_input(arguments: list[str], says: str) -> None:
    answer = rocelab(*arguments)
    assert answer.returncode == 2
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(("verbs", "left_out"), [("", True), ('verbs = "mlx5_0"\n', False)])
def test_adapter_transports_need_an_adapter(tmp_path: Path, verbs: str, left_out: bool) -> None:
    """They are left out, with a message, if the inventory names no adapter."""
    hosts = "".join(
        f'[[host]]\nname = "n{i}"\nhost = "127.0.0.1"\nport = 1\nnetdev = "eth1"\n{verbs}'
        for i in (1, 2)
    )
    (tmp_path / "hosts.toml").write_text(hosts)
    answer = rocelab("study", "run", "gaiser2010", "--inventory", str(tmp_path / "hosts.toml"))
    assert answer.returncode == 4
    assert "Traceback" not in answer.stderr
    assert ("left out: hw-v1, ib: no host of the inventory" in answer.stderr) == left_out


STUDY = {
    "study": {"title": "t", "authors": "a", "year": 2000, "publication": "p"},
    "claim": [
        {"name": "one", "text": "t", "source": "s", "check": "untestable", "because": "because"}
    ],
}
COLUMNS = "system,transport,tool,test,metric,statistic,size,low,high,unit,says,source\n"


def test_study_files_are_read_strictly() -> None:
    assert study_file.read("x", STUDY, COLUMNS).claims[0].name == "one"
    claim = {**STUDY["claim"][0], "extra": 1}  # type: ignore[index]
    with pytest.raises(UsageError, match=r"claim\[1\]\.extra: unknown key"):
        study_file.read("x", {**STUDY, "claim": [claim]}, COLUMNS)
    with pytest.raises(UsageError, match="columns"):
        study_file.read("x", STUDY, "a,b\n")
    for row in (
        "s,t,p,x,m,best,,two,,u,q,w",
        "s,t,p,x,m,most,,2,,u,q,w",
        "s,t,p,x,m,best,,2,1,u,q,w",
    ):
        with pytest.raises(UsageError, match="figure 1"):
            study_file.read("x", STUDY, COLUMNS + row)


def verdict_of(study: str, name: str, lines: list[Line], **how: object) -> Verdict:
    return judged(study, name, lines, **how).verdict


def test_tools_are_never_mixed() -> None:
    """Another tool's latency of the same name neither answers a claim nor changes the answer."""
    mine = [
        Line("latency", "tcp", "latency.mean", {1: 21090.0}),
        Line("latency", "hw-v1", "latency.mean", {1: 3700.0}),
    ]
    others = [
        Line("latency", t, "latency.mean", {1: 1000.0}, tool=tool)
        for tool in ("omb", "imb", "skampi")
        for t in ("tcp", "hw-v1")
    ]
    name = "roce-speedup-latency"
    assert verdict_of("gaiser2010", name, mine) is HOLDS
    assert verdict_of("gaiser2010", name, [*mine, *others]) is HOLDS
    assert judged("gaiser2010", name, others).because == (
        "because this run has no latency.mean of mpibench latency over hw-v1"
    )


def test_files_of_any_size_count() -> None:
    """From 32 MiB on, three times as slow."""
    sizes = [1 << power for power in range(20, 29)]
    lines = [
        Line("get", "ib", "transfer.time", dict.fromkeys(sizes, 1e9), "whole", "ns", tool="rcopy"),
        Line(
            *("get", "hw-v1", "transfer.time"),
            {size: 3e9 if size >= 1 << 25 else 1e9 for size in sizes},
            *("whole", "ns"),
            tool="rcopy",
        ),
    ]
    answer = judged("subramoni2009", "ftp", lines, repetitions=10)
    assert answer.verdict is DOES_NOT_HOLD
    assert "not so at 33554432 bytes and 3 others" in answer.because


def test_pairs_that_help_small_messages_only() -> None:
    """Half as much again below 64 KiB, line rate above."""
    sizes = [1 << power for power in range(21)]
    one = {size: min(1e6 * size, 1.1e9) for size in sizes}
    more = {size: value * 1.5 if size < 65536 else value for size, value in one.items()}

    def answer(pairs: dict[int, float]) -> Verdict:
        lines = [Line("bw", "tcp", "bandwidth", one), Line("mbw_mr", "tcp", "bandwidth", pairs)]
        return verdict_of("subramoni2009", "pairs-help-tcp", lines, repetitions=10)

    assert answer(more) is HOLDS
    assert answer(one) is DOES_NOT_HOLD


def test_a_zero_matters_only_where_the_claim_is() -> None:
    """The claim ends at 8 KiB."""

    def answer(small: float, large: float) -> Answer:
        lines = [
            Line("send_lat", t, "latency.mean", {64: small, 65536: large}, tool="perftest")
            for t in ("ib", "hw-v1")
        ]
        return judged("subramoni2009", "rdmaoe-latency-like-ib", lines)

    assert answer(1000.0, 0.0).verdict is HOLDS
    void = answer(0.0, 1000.0)
    assert void.verdict is UNTESTED
    assert void.because == "because a measured value at 64 bytes is not above 0"


def test_drift_cancels_between_paired_repetitions() -> None:
    """Each repetition is slower than the one before, on both sides."""
    lines = [
        Line("bw", "rxe-v1", "bandwidth", {131072: 100.0}),
        Line("bw", "hw-v1", "bandwidth", {131072: 100.0}),
    ]
    drifting = table(lines).with_columns(value=pl.col("value") * (1 + pl.col("repetition") * 0.2))
    answered = answers(library.study("gaiser2010"), Results(drifting))
    assert next(a for a in answered if a.claim.name == "soft-roce-like-roce").verdict is HOLDS


def test_a_claim_about_three_hops() -> None:
    def answer(switches: int | None) -> Answer:
        run = through(switches, {"ib": 1000.0, "hw-v2": 2550.0}, study="zeng2021")
        return by_two("latency-above-ib", run, None, "zeng2021")

    assert answer(3).verdict is HOLDS
    assert answer(1).because == "because this run went through 1 switches, but the claim is about 3"
    assert "`--switches` records it" in answer(None).because


def test_an_average_over_applications() -> None:
    def answer(slower: float, missing: str = "") -> Answer:
        lines = [
            Line(test, t, "application.time", {0: time}, "application", "ns", tool="npb")
            for test, factor in (("cg", 0.8), ("ft", 1.25), ("is", 1.0), ("mg", 1.0))
            for t, time in (("hw-v1", 1e9), ("tcp", 1e9 * slower * factor))
            if test != missing
        ]
        return judged("subramoni2009", "nas-rdmaoe", lines)

    assert answer(3.5).verdict is HOLDS
    assert answer(2.0).verdict is DOES_NOT_HOLD
    assert "no application.time of npb mg" in answer(3.5, "mg").because


def test_the_overhead_of_encapsulation_is_answered_by_stages() -> None:
    def answer(stages: float) -> Answer:
        lines = [
            Line("send_lat", "rxe-v1", "latency.mean", {64: 10000.0}, tool="perftest"),
            Line(
                *("send_lat", "rxe-v1", "encapsulation.mean", {64: stages}, "SEND", "ns"),
                tool="perftest",
            ),
        ]
        return judged("subramoni2009", "encapsulation-is-marginal", lines)

    small = answer(600.0)
    assert small.verdict is HOLDS
    assert "encapsulation.mean / latency.mean 0.06" in small.because
    assert "An analogue: The claim is about an adapter" in small.because
    assert answer(2000.0).verdict is DOES_NOT_HOLD


@pytest.mark.parametrize(
    ("kind", "accelerator", "verdict"),
    [
        ("stall", "native", HOLDS),
        ("testbed", "native", HOLDS),
        ("proof", "native", UNTESTED),
        ("stall", "tcg", UNTESTED),
    ],
)
def test_a_claim_that_machines_lock_up(
    tmp_path: Path, kind: str, accelerator: str, verdict: Verdict
) -> None:
    """One repetition of bibw did not end; a failed proof says nothing about that."""
    lines = [Line(test, "rxe-v1", "bandwidth", {1: 5.0}) for test in ("bw", "bibw")]
    values = table(lines, accelerator=accelerator).filter(
        (pl.col("test") != "bibw") | (pl.col("repetition") != 6)
    )
    folder = write_run(tmp_path / "run", values, study="gaiser2010")
    cell = "mpibench-bibw.rxe-v1.r06"
    path = folder / "cells" / cell / "cell.json"
    path.parent.mkdir(parents=True)
    record = json.loads(next((folder / "cells").glob("*/cell.json")).read_text())
    error = {"what": "w", "cause": "c", "action": "a", "size": None, "kind": kind}
    path.write_text(json.dumps(record | {"cell": cell, "status": "error", "error": error}))
    answered = answers(library.study("gaiser2010"), results(read.load(folder)))
    assert next(a for a in answered if a.claim.name == "soft-roce-locks-up").verdict is verdict


@pytest.mark.parametrize("name", library.NAMES)
def test_a_study_says_beforehand_how_many_repetitions_it_needs(name: str) -> None:
    """Its own ten suffice at 1 % of noise; more noise takes more."""
    study, plan = library.study(name), library.plan(name, quick=False)
    need = planning.need(study, plan)
    assert need is not None
    few, more, most = (need.repetitions(noise) or 0 for noise in planning.NOISES)
    assert 6 <= few <= plan.repetitions < more < most
    assert planning.need(study, library.plan(name, quick=True)) is None
    shown = re.sub(r"\s+", " ", rocelab("study", "show", name).stdout)
    assert f"takes this many: {few} at 1 %, {more} at 2 %, {most} at 3 %" in shown


def test_an_undecided_claim_says_how_long_the_rest_takes(tmp_path: Path) -> None:
    """Three repetitions with cells of five minutes; three more make an interval."""
    folder = write_run(tmp_path / "run", table(bandwidths(100), repetitions=3), study="gaiser2010")
    paths = sorted((folder / "cells").glob("*/cell.json"))

    def because(began: object, ended: object) -> str:
        for path in paths:
            repetition = int(path.parent.name[-2:])
            times = {"started": began, "ended": ended, "repetition": repetition}
            path.write_text(json.dumps(json.loads(path.read_text()) | times))
        answered = answers(library.study("gaiser2010"), results(read.load(folder)))
        return next(a for a in answered if a.claim.name == "soft-roce-like-roce").because

    takes = words.duration(3 * 300 * len(paths) / 3)
    timed = because("2026-11-21T03:15:00Z", "2026-11-21T03:20:00Z")
    assert timed.endswith(f"; at this run's pace, 3 more take about {takes}")
    for began, ended in (("soon", 7), ("2026-11-21T03:15:00Z", "2026-11-21T03:20:00"), (None, [])):
        assert "pace" not in because(began, ended)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (119, "119 s"), (1800, "30 min"), (9000, "2.5 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


def test_a_boot_for_each_repetition() -> None:
    refused = rocelab("study", "run", "gaiser2010", "--boots", "10")
    assert refused.returncode == 2
    assert "hosts of your own" in refused.stderr
    plan = library.plan("gaiser2010", quick=True).with_boots(10)
    assert (plan.repetitions, plan.where_counted().repetitions) == (10, 10)
    assert plan_file.from_dict(plan.to_dict(), "plan") == plan


def test_a_study_at_another_mtu() -> None:
    """subramoni2009 asks whether the MTU explains the CPU time: one run at 1500, one at 4200."""
    plan = library.plan("subramoni2009", quick=False)
    assert plan.testbed.mtu == 1500
    wide = other_testbed.at_mtu(plan, 4200)
    assert (wide.testbed.mtu, wide.name) == (4200, "subramoni2009-mtu4200")
    assert wide.benchmarks == plan.benchmarks
    assert wide.study == plan.study
    assert plan_file.from_dict(wide.to_dict(), "wide") == wide
    assert other_testbed.at_mtu(plan, 1500) == plan
    refused = rocelab("study", "run", "subramoni2009", "--mtu", "1000")
    assert refused.returncode == 2
    assert "1280" in refused.stderr
