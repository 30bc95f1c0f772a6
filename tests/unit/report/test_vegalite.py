# SPDX-License-Identifier: GPL-2.0-or-later
"""Our drawing of Vega-Lite: where scales, bars, lines and legends put things."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from rocelab.report import charts, vegalite
from rocelab.report.vegalite import text
from rocelab.report.vegalite.scales import band, continuous

SVG = "{http://www.w3.org/2000/svg}"


def drawn(spec: charts.Spec, *, legend: bool = True) -> ElementTree.Element:
    return ElementTree.fromstring(vegalite.draw({**spec, "config": charts.config(legend=legend)}))


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("domain", "count", "ticks"),
    [
        ((0, 367), 5, [0, 100, 200, 300]),
        ((-0.3, 0.45), 5, [-0.2, 0, 0.2, 0.4]),
        ((0, 10_019), 4, [0, 2000, 4000, 6000, 8000, 10_000]),
    ],
)
def test_ticks_are_round(domain: tuple[float, float], count: int, ticks: list[float]) -> None:
    """As d3-array's."""
    scale = continuous({"domain": domain, "nice": False}, [], (0, 100))
    assert scale.ticks(count)[0] == pytest.approx(ticks)


def test_scales() -> None:
    log = continuous({"type": "log", "domain": [1, 10_000], "nice": False}, [], (0, 400))
    assert [log(value) for value in (1, 10, 100)] == pytest.approx([0, 100, 200])
    padded = continuous({"domain": [0, 1], "padding": 10, "nice": False}, [], (0, 100))
    assert [padded(0), padded(1)] == pytest.approx([10, 90])
    nice = continuous({}, [3, 142], (100, 0))
    assert nice.domain == (0, 160)
    assert nice(160) == pytest.approx(0)
    names = band({"paddingInner": 0.28}, ["a", "b"], 52)
    assert (names.band, names("b") - names("a")) == pytest.approx((26 * 0.72, 26))


@pytest.mark.parametrize("odd", [math.nan, math.inf, 1e308, -1e308])
def test_any_number_is_drawn(odd: float) -> None:
    parts = [charts.Part("tcp", "user", odd, "odd"), charts.Part("tcp", "rxe", 3, "three")]
    series = [("user", "#111111"), ("rxe", "#222222")]
    drawn(charts.stacks(parts, rows=["tcp"], series=series, x_title="ns", x_top=odd))


def test_parts_of_a_bar_stand_in_their_order_and_say_what_they_are() -> None:
    parts = [charts.Part("tcp", name, 10, f"{name} <10>") for name in ("user", "rxe")]
    series = [("rxe", "#222222"), ("user", "#111111")]
    spec = charts.stacks(parts, rows=["tcp"], series=series, x_title="ns", x_top=20, width=100)
    root = drawn(spec)
    bars = {
        bar.get("aria-label"): (
            float(bar.get("x", "")),
            float(bar.get("width", "")),
            bar.get("fill"),
        )
        for bar in root.iter(f"{SVG}rect")
        if bar.get("aria-roledescription") == "bar"
    }
    assert bars == {"user <10>": (0, 50, "#111111"), "rxe <10>": (50, 50, "#222222")}
    assert {"rxe", "user", "tcp", "ns", "20"} <= set(texts(root))
    assert "user" not in texts(drawn(spec, legend=False))


def test_charts_in_a_row_do_not_overlap() -> None:
    parts = [charts.Part("a long name of a row", "user", 10, "")]
    one = charts.stacks(
        parts, rows=["a long name of a row"], series=[("user", "#111111")], x_title="", x_top=10
    )
    root = drawn(charts.concat([one, one], titles=["first", "second"], columns=2))
    first, second = (
        float(group.get("transform", "").removeprefix("translate(").partition(",")[0])
        for group in root.iter(f"{SVG}g")
    )
    assert second - first > charts.BAR_WIDTH + text.width("a long name of a row", 11)
    assert float(root.get("width", "")) > second + charts.BAR_WIDTH


def test_numbers_as_d3_writes_them() -> None:
    assert text.number(1500, "~s") == "1.5k"
    assert text.number(0.2, "~s") == "200m"
    assert text.number(-20_000, "", 5000) == "\N{MINUS SIGN}20,000"
    assert text.number(0.3, "", 0.1) == "0.3"
    assert text.number(20_000, ",~g") == "20,000"
    assert text.number(0, "~s") == "0"
