# SPDX-License-Identifier: GPL-2.0-or-later
"""One colour for each transport and stage, the same in every figure, in light and dark.

Transports take hues that stay apart under the common colour deficiencies (after Okabe and Ito,
"Color Universal Design", 2008). They also differ in point shape and dash, so colour is never the
only distinction. A stage's hue gives its kind of work: blue for headers and checks (encapsulation
and decapsulation), orange for memory, green for the driver's bookkeeping, violet for handing over.
Neighbours in a stack differ in lightness.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocelab import stage_table


@dataclass(frozen=True)
class Colour:
    """A colour on light ground and its counterpart on dark ground, both `#rrggbb`."""

    light: str
    dark: str


@dataclass(frozen=True)
class TransportStyle:
    """How a transport is drawn: colour, Vega point shape, and dash lengths in pixels."""

    colour: Colour
    shape: str
    dash: tuple[int, ...]


INK = Colour("#1b2027", "#e6e9ee")
MUTED = Colour("#59626f", "#a3adba")
GRID = Colour("#e3e7ec", "#323a45")
AXIS = Colour("#8b95a3", "#6b7684")
GROUND = Colour("#ffffff", "#14181d")
"""The page's background, also used between the parts of a stack."""

TRANSPORTS: dict[str, TransportStyle] = {
    "tcp": TransportStyle(Colour("#d55e00", "#f58b3c"), "square", (1, 0)),
    "ipoib": TransportStyle(Colour("#6b4a00", "#ffe066"), "diamond", (6, 2)),
    "rxe-v1": TransportStyle(Colour("#2f9fd6", "#7cc8f0"), "triangle-up", (5, 3)),
    "rxe-v2": TransportStyle(Colour("#00538f", "#4a9fe0"), "circle", (1, 0)),
    "hw-v1": TransportStyle(Colour("#35a98b", "#7fd8bd"), "triangle-down", (5, 3)),
    "hw-v2": TransportStyle(Colour("#00735a", "#2fb794"), "cross", (1, 0)),
    "iwarp": TransportStyle(Colour("#5d5fef", "#8a7aff"), "triangle-left", (2, 2)),
    "ib": TransportStyle(Colour("#a3357a", "#e07bb9"), "triangle-right", (2, 2)),
}

UNKNOWN_TRANSPORT = TransportStyle(Colour("#6b7280", "#9aa4b2"), "stroke", (2, 3))
"""For transports that design.md does not list."""

_SHADES: dict[str, tuple[Colour, ...]] = {
    "header": (
        Colour("#a9cdf0", "#a9cdf0"),
        Colour("#5f9fda", "#6ea9e0"),
        Colour("#2a71b8", "#3b84cd"),
        Colour("#0b3f7f", "#1a56a3"),
        Colour("#82b6ea", "#82b6ea"),
        Colour("#1b579a", "#2c6bb3"),
    ),
    "memory": (
        Colour("#d9660f", "#e57a2a"),
        Colour("#fdb873", "#f5b06a"),
        Colour("#9c4a08", "#c2651a"),
    ),
    "bookkeeping": (
        Colour("#9bd08b", "#8fca7e"),
        Colour("#2c8c4f", "#3aa362"),
        Colour("#b9dfa6", "#c9ecb8"),
        Colour("#1d5f36", "#2a7d4a"),
    ),
    "handover": (
        Colour("#8a6fc0", "#9c84d0"),
        Colour("#c9b6e4", "#bda8dd"),
        Colour("#5b4391", "#7458b0"),
    ),
    "wait": (Colour("#b4bac3", "#7f8997"), Colour("#8f97a3", "#a5aeba")),
}
"""By the class of tables/stages.csv; each class has a shade to spare for a new stage."""


def _stage_colours() -> dict[str, Colour]:
    """Give each name the next shade of its class, the same one in both directions."""
    left = {kind: iter(shades) for kind, shades in _SHADES.items()}
    colours: dict[str, Colour] = {}
    for stage in stage_table.STAGES:
        if stage.name not in colours:
            colours[stage.name] = next(left[stage.kind])
    return colours


STAGES = _stage_colours()
OUTSIDE = Colour("#d3d8df", "#4a5361")
"""Time that no stage covers, outside the driver."""

HEADERS = Colour("#2a71b8", "#3b84cd")
PAYLOAD = Colour("#fdb873", "#f5b06a")
MEMORY = _SHADES["memory"][0]

PACKETS = {
    "request": Colour("#00538e", "#4a9fe1"),
    "response": Colour("#35a98c", "#7fd8be"),
    "ACK": Colour("#6f7a89", "#8d98a7"),
    "NAK": Colour("#b3261d", "#ff8a81"),
    "RNR NAK": Colour("#8a6fc1", "#9c84d1"),
    "sent again or late": Colour("#d95f00", "#f58b3d"),
}
"""A packet of a sequence diagram, by its kind; the colours differ from all others."""
FINDING = Colour("#a3357b", "#e07bba")


CPU: dict[tuple[str, str], Colour] = {
    # (owner, context): grey the benchmark's, orange and brown the driver's, blue the network's,
    # violet all others'
    ("benchmark", "user"): Colour("#c3c9d1", "#6d7785"),
    ("benchmark", "syscall"): Colour("#7d8794", "#9ba5b2"),
    ("rxe", "syscall"): Colour("#fdc78f", "#f8c48e"),
    ("rxe", "kthread"): Colour("#d9660e", "#e57a29"),
    ("rxe", "softirq"): Colour("#8f3d00", "#b9591a"),
    ("network", "syscall"): Colour("#a9cdf1", "#a9cdf1"),
    ("network", "kthread"): Colour("#6ca6de", "#79b0e5"),
    ("network", "softirq"): Colour("#2a71b9", "#3b84ce"),
    ("network", "hardirq"): Colour("#0b3f80", "#1c5dac"),
    ("other", "kernel"): Colour("#b9a5cf", "#a893c2"),
}
"""CPU time, in the order of its stack."""


def transport_style(name: str) -> TransportStyle:
    """Return the style of a transport, `UNKNOWN_TRANSPORT` for a name not known."""
    return TRANSPORTS.get(name, UNKNOWN_TRANSPORT)


def all_colours() -> list[Colour]:
    """Return every colour a figure may use, each light value once."""
    colours = [INK, MUTED, GRID, AXIS, GROUND, OUTSIDE, HEADERS, PAYLOAD]
    colours += [style.colour for style in TRANSPORTS.values()]
    colours += [*PACKETS.values(), FINDING]
    colours += [UNKNOWN_TRANSPORT.colour, *STAGES.values(), *CPU.values()]
    return list({colour.light: colour for colour in colours}.values())
