# SPDX-License-Identifier: GPL-2.0-or-later
"""What one more message costs a machine's processors, and the start of its programs apart from it.

A step is measured with several counts of messages (`layout.PASSES`). Work grows linearly with the
count: the slope is the cost of a message, the intercept what the programs' start and end take.
Without probes there is only the total. Probes split it by context and owner, and add work of their
own, which is the difference between the slopes with and without them. It is taken from the parts
in proportion to what the probes say of themselves: rxecpu's events fall into the accounts whose
stretches of time they end, rxestat's programs into the driver's. docs/numbers.md has the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rocelab import metrics
from rocelab.plans.benchmarks.tool import Value
from rocelab.record.rxecpu_document import Account, Split

KERNEL_OWNERS = ("benchmark", "network", "rxe")
"""Who works in the kernel for messages; the program itself by system calls and faults."""
IDLE_LOOP: Account = ("idle", "other")
"""The account of what the idle loop does before and after a processor is halted."""


@dataclass(frozen=True)
class Point:
    """One pass."""

    messages: int
    work: int
    """What the machine's processors worked, ns."""


@dataclass(frozen=True)
class Watched:
    """One pass that probes watched."""

    point: Point
    split: Split
    rxestat_ns: float = 0.0
    """What rxestat says that it took; 0: it did not run."""


@dataclass(frozen=True)
class Line:
    """Work by messages."""

    slope: float
    """ns a message."""
    start: float
    """ns."""

    @classmethod
    def through(cls, few: Point, many: Point) -> Line:
        """Return the line through two passes. Raises ValueError if they are not two."""
        more = many.messages - few.messages
        if more <= 0:
            raise ValueError(more)
        slope = (many.work - few.work) / more
        return cls(slope, many.work - slope * many.messages)

    def miss(self, third: Point, more: int) -> float:
        """How far a third pass is from the line, as a share of `more` messages' cost."""
        return (third.work - self.start - self.slope * third.messages) / (self.slope * more)


def values(few: Point, many: Point, half: Point | None) -> Iterator[Value]:
    """The total's values, from passes without probes; nothing if they do not determine a cost."""
    try:
        line = Line.through(few, many)
    except ValueError:
        return
    # in real time a disturbed slope may be below 0: without those their mean would be too high
    yield Value(metrics.MESSAGE_COST, metrics.MARGINAL, line.slope, "ns")
    yield Value(metrics.MESSAGE_COST, metrics.START, line.start, "ns")
    if half is not None and line.slope > 0:
        miss = line.miss(half, many.messages - few.messages)
        yield Value(metrics.MESSAGE_COST, metrics.RESIDUAL, miss, "1")


def parts(few: Watched, many: Watched, unwatched: float) -> Iterator[Value]:
    """The split of the slope `unwatched`, ns a message, by context and owner.

    The parts add up to it.
    """
    try:
        with_probes = Line.through(few.point, many.point).slope
    except ValueError:
        return
    more = many.point.messages - few.point.messages
    gross = _slopes(_by_messages(few.split.busy), _by_messages(many.split.busy), more)
    gross[IDLE_LOOP] = with_probes - sum(gross.values())
    watching = with_probes - unwatched
    yield Value(metrics.WATCHING_COST, metrics.MARGINAL, watching, "ns")
    own = _own(few.split, many.split, gross, more, (many.rxestat_ns - few.rxestat_ns) / more)
    yield from _net(gross, _shares(own, gross, watching), metrics.MARGINAL)


def of_kernel(parts: Iterable[Value], size: int) -> Iterator[Value]:
    """What the kernel does for one more message, and for one more MB of messages of this size.

    It is the sum of `parts`: the benchmark's system calls, the stack and the driver.
    """
    accounts = [(metrics.Account.parse(part.metric), part.value) for part in parts]
    kernel = [ns for a, ns in accounts if a and a.owner in KERNEL_OWNERS and a.context != "user"]
    if not kernel:
        return
    each = sum(kernel)
    yield Value(metrics.CpuPer("message").name, metrics.KERNEL_MARGINAL, each, "ns")
    if size:
        yield Value(metrics.CpuPer("mb").name, metrics.KERNEL_MARGINAL, each / size * 1e6, "ns")


def in_kernel(
    few: Split, many: Split, more: int, rxestat_ns: float, *, polls_by_calls: bool
) -> Iterator[Value]:
    """What `more` messages of a program that polls cost in the kernel, each, by context and owner.

    Work that depends on the wait is left out: user mode, with `polls_by_calls` the program's system
    calls, and what belongs to nobody in particular. It is net of what the probes state of
    themselves, of which `rxestat_ns` is rxestat's, by message.
    """
    owners = {"network", "rxe"} if polls_by_calls else set(KERNEL_OWNERS)
    gross = {
        account: ns
        for account, ns in _slopes(few.busy, many.busy, more).items()
        if account[1] in owners and account[0] != "user"
    }
    own = _own(few, many, gross, more, rxestat_ns)
    yield from _net(gross, own, metrics.KERNEL_MARGINAL)


def _net(
    gross: Mapping[Account, float], own: Mapping[Account, float], kind: str
) -> Iterator[Value]:
    """Each account without the probes' own part, softirqs of all kinds together."""
    sums: dict[Account, float] = {}
    for (context, owner), ns in gross.items():
        account = context.partition(".")[0], owner
        sums[account] = sums.get(account, 0.0) + ns - own.get((context, owner), 0.0)
    for (context, owner), net in sorted(sums.items()):
        yield Value(metrics.Account(context, owner).name, kind, net, "ns")


def _own(
    few: Split, many: Split, gross: Mapping[Account, float], more: int, rxestat_ns: float
) -> dict[Account, float]:
    """What the probes say that a message costs them, by the account that contains it, ns."""
    events = _slopes(_by_messages(few.stretches), _by_messages(many.stretches), more)
    events[IDLE_LOOP] = (many.idle_stretches - few.idle_stretches) / more
    own = {account: count * many.event_ns for account, count in events.items()}
    driver = {account: ns for account, ns in gross.items() if account[1] == "rxe" and ns > 0}
    for account, ns in driver.items():
        own[account] = own.get(account, 0.0) + rxestat_ns * ns / sum(driver.values())
    return own


def _shares(
    own: Mapping[Account, float], gross: Mapping[Account, float], whole: float
) -> dict[Account, float]:
    """Split `whole` in proportion to `own`, but give no account more than all of its work.

    Events differ in their cost, so a part with many cheap ones would come out below 0.
    """
    left = {account: ns for account, ns in own.items() if ns > 0}
    shares: dict[Account, float] = {}
    while left:
        scale = whole / sum(left.values())
        full = {a for a, ns in left.items() if scale * ns > max(gross.get(a, 0.0), 0.0)}
        if not full or full == left.keys():
            return shares | {account: scale * ns for account, ns in left.items()}
        for account in full:
            shares[account] = max(gross.get(account, 0.0), 0.0)
            whole -= shares[account]
            del left[account]
    return shares


def _by_messages(accounts: Mapping[Account, int]) -> dict[Account, int]:
    """What messages can cause: not what other programs do, such as the shell of the server."""
    return {
        (context, owner): number
        for (context, owner), number in accounts.items()
        if owner != "other" or context not in ("user", "syscall", "fault")
    }


def _slopes(
    few: Mapping[Account, int], many: Mapping[Account, int], more: int
) -> dict[Account, float]:
    return {
        account: (many.get(account, 0) - few.get(account, 0)) / more
        for account in sorted({*few, *many})
    }
