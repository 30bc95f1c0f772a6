# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers as text, and charts as valid Vega-Lite in distinguishable colours."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import altair as alt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocelab import stage_table, units
from rocelab.report import charts, palette, series_order

NNBSP = units.NARROW_SPACE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0123456, "0.0123"),
        (1.5, "1.50"),
        (12.345, "12.3"),
        (999.96, "1,000"),
        (0.99963, "1.00"),
        (123456.7, "123,457"),
        (-2.5, f"{units.MINUS}2.50"),
        (74.0, "74"),
        (float("nan"), units.ABSENT),
    ],
)
def test_number(value: float, text: str) -> None:
    assert units.number(value) == text


@example(7.353949191587934e-05, 6)  # was 0.000073539
@given(st.floats(min_value=1e-12, max_value=1e15), st.integers(min_value=2, max_value=6))
def test_number_keeps_its_digits(value: float, digits: int) -> None:
    text = units.number(value, digits).replace(",", "")
    assert abs(Fraction(text) - Fraction(value)) <= Fraction(value) * Fraction(6, 10**digits)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (2, "2 B"), (1024, "1 KiB"), (1500, "1,500 B"), (1 << 20, "1 MiB")],
)
def test_size(value: int, text: str) -> None:
    assert units.size(value).replace(NNBSP, " ") == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1234, "ns", "1.23 µs"),
        (12, "ns", "12 ns"),
        (2.5e9, "bytes/s", "2.50 GB/s"),
        (74, "bytes", "74 B"),
        (3, "1", "3"),
        (5, "furlongs", "5 furlongs"),
    ],
)
def test_quantity(value: float, unit: str, text: str) -> None:
    assert units.quantity(value, unit).replace(NNBSP, " ") == text


def test_listing() -> None:
    assert [units.listing(list("abc"[:n])) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


@given(st.text())
def test_slug_is_always_a_file_name(text: str) -> None:
    slug = series_order.slug(text)
    assert slug
    assert len(slug) <= 80
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not slug.startswith("-")


@pytest.mark.slow
def test_charts_are_valid_vega_lite() -> None:
    points = [
        charts.LinePoint(size, name, 2.0, 1.0, 3.0, (1.0, 2.0, 3.0), "label")
        for size in (0, 64, 1024)
        for name in ("tcp", "odd\\name'];//")
    ]
    line = charts.lines(points, series=["tcp", "odd\\name'];//"], y_title="y", y_values=[1, 300])
    parts = [charts.Part("64 B", "icrc", 1.5, "label"), charts.Part("64 B", "copy", 2.5, "label")]
    stack = charts.stacks(
        parts,
        rows=["64 B"],
        series=[("icrc", "#000000"), ("copy", "#ffffff")],
        x_title="x",
        x_top=4.0,
        columns=[("sum", ["4.0"])],
    )
    both = charts.concat([line, stack], titles=["one", "two"], columns=2)
    for spec in (line, stack, both):
        whole = {"$schema": alt.SCHEMA_URL, **spec, "config": charts.config(legend=True)}
        alt.Chart.from_dict(whole).to_dict(validate=True)


# severe deficiencies, on linear RGB: Machado, Oliveira and Fernandes, "A Physiologically-based
# Model for Simulation of Color Vision Deficiency" (2009), table for severity 1.0
_VISIONS = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}


def _seen(colour: str, vision: str) -> tuple[float, float, float]:
    """Return CIELAB (D65) of a colour as seen with this colour vision."""
    rgb = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    r, g, b = (
        min(max(sum(m * c for m, c in zip(row, linear, strict=True)), 0.0), 1.0)
        for row in _VISIONS[vision]
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    )
    x, y, z = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _apart(one: str, other: str, vision: str) -> float:
    return math.dist(_seen(one, vision), _seen(other, vision))


@pytest.mark.parametrize("vision", _VISIONS)
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_colours_can_be_told_apart(vision: str, ground: str) -> None:
    transports = {n: getattr(s.colour, ground) for n, s in palette.TRANSPORTS.items()}
    for one, other in itertools.combinations(transports, 2):
        assert _apart(transports[one], transports[other], vision) > 10, (one, other)
    stages = {name: getattr(colour, ground) for name, colour in palette.STAGES.items()}
    orders = (
        stage_table.TX,
        [name for name in stage_table.DELIVERING if name not in stage_table.WAITING],
    )
    for order in orders:
        for one, other in itertools.pairwise(order):
            assert _apart(stages[one], stages[other], vision) > 15, (one, other)


def test_transports_differ_in_shape_too() -> None:
    shapes = [style.shape for style in palette.TRANSPORTS.values()]
    assert len(set(shapes)) == len(shapes)
