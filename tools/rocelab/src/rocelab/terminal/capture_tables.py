# SPDX-License-Identifier: GPL-2.0-or-later
"""Print an analysis: the verdict, a summary of one screen, then connections, then findings.

File names and names in captures are untrusted: they go through `printable`.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rocelab.capture import management
from rocelab.terminal import grid
from rocelab.terminal.printable import printable
from rocelab.terminal.verdict_lines import verdict

_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_STYLE = {"error": "bold red", "warning": "yellow", "note": "dim"}
_MARGIN = (0, 2, 0, 0)


def _number(value: float) -> str:
    for size, unit in _UNITS:
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:g} "


def _bytes(value: float) -> str:
    return _number(value) + "B"


_SECOND = 10**9
_SPANS = (
    *((48 * 3600 * _SECOND, 24 * 3600 * _SECOND, "days"), (10**12, 3600 * _SECOND, "h")),
    *((_SECOND, _SECOND, "s"), (10**6, 10**6, "ms"), (10**3, 10**3, "µs")),
)
"""Least duration (ns) shown in a unit, the unit's length (ns), and its name."""


def duration(value: int | None) -> str:
    """A time in ns as people read it."""
    if value is None:
        return "-"
    for least, size, unit in _SPANS:
        if value >= least:
            number = value / size
            return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
    return f"{value} ns"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _grid() -> Table:
    grid = Table.grid(padding=_MARGIN)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _input_line(result: dict[str, Any]) -> str:
    read = result["input"]
    text = f"{read['packets']} packets, {_bytes(read['bytes'])}"
    if read["first_ns"] is not None:
        text += f", {duration(read['last_ns'] - read['first_ns'])} long"
    for key, word in (
        ("truncated", "snapped"),
        ("cut_headers", "cut within the headers"),
    ):
        if read[key]:
            text += f", {read[key]} {word}"
    return text


def _roce_line(result: dict[str, Any]) -> str:
    roce = result["roce"]
    kinds = [
        f"{roce[key]} {label}"
        for key, label in (
            ("v1", "v1"),
            ("v2_ipv4", "v2 over IPv4"),
            ("v2_ipv6", "v2 over IPv6"),
            ("infiniband", "native InfiniBand"),
            ("vlan", "with VLAN tags"),
            ("tunneled", "in tunnels"),
        )
        if roce[key]
    ]
    return f"{roce['packets']} packets" + (f": {', '.join(kinds)}" if kinds else "")


def _icrc_line(result: dict[str, Any]) -> Text:
    icrc = result["icrc"]
    text = Text(f"{icrc['ok']} right, ")
    text.append(f"{icrc['bad']} wrong", style="bold red" if icrc["bad"] else "")
    text.append(f", {icrc['unchecked']} not checked")
    if icrc["diagnoses"]:
        text.append(" (" + ", ".join(f"{n} {why}" for why, n in icrc["diagnoses"].items()) + ")")
    return text


def _opcode_line(result: dict[str, Any], most: int = 6) -> str:
    ranked = sorted(result["opcodes"].items(), key=lambda item: -item[1])
    text = ", ".join(f"{name} {count}" for name, count in ranked[:most])
    return text + (f", {len(ranked) - most} more" if len(ranked) > most else "")


def _overhead_line(result: dict[str, Any]) -> str:
    overhead = result["overhead"]
    wire = overhead["wire_bytes"]
    headers = ", ".join(
        f"{name} {_share(count, wire)}"
        for name, count in sorted(overhead["by_header"].items(), key=lambda item: -item[1])[:5]
    )
    return f"payload {_share(overhead['payload_bytes'], wire)} of {_bytes(wire)}; {headers}"


def _congestion_line(result: dict[str, Any]) -> str:
    congestion = result["congestion"]
    ecn = congestion["ecn"]
    dscp = ", ".join(f"{code} ({count})" for code, count in congestion["dscp"].items())
    cnps = result["opcodes"].get("CNP", 0)
    return (
        f"{ecn['ce']} CE, {ecn['ect0'] + ecn['ect1']} ECT, {cnps} CNP, {congestion['pfc']} PFC, "
        f"{congestion['pause']} PAUSE; DSCP {dscp or '-'}"
    )


def _efficiency(result: dict[str, Any]) -> RenderableType | None:
    rows = result["overhead"]["by_message_size"]
    if not rows:
        return None
    nets = sorted({row["net"] for row in rows})
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("message up to", justify="right")
    for net in nets:
        table.add_column(f"{net}: payload", justify="right")
        table.add_column("messages", justify="right")
    for size in sorted({row["message_bytes_up_to"] for row in rows}):
        cells = [_bytes(size)]
        for net in nets:
            match = [r for r in rows if (r["net"], r["message_bytes_up_to"]) == (net, size)]
            cells += (
                [f"{100 * match[0]['efficiency']:.1f} %", str(match[0]["messages"])]
                if match
                else ["", ""]
            )
        table.add_row(*cells)
    return table


def _connections(result: dict[str, Any]) -> int:
    """All of them, listed or not."""
    return len(result["connections"]) + int(result["connections_unreported"])


def _findings_line(result: dict[str, Any]) -> Text:
    text = Text()
    for severity in ("error", "warning", "note"):
        count = sum(r["count"] for r in result["finding_counts"] if r["severity"] == severity)
        text.append(f"{count} {severity}{'' if count == 1 else 's'}, ",
                    style=_STYLE[severity] if count else "")  # fmt: skip
    text.append(f"{result['findings_ambiguous']} of them ambiguous")
    return text


def summary(result: dict[str, Any]) -> RenderableType:
    """The summary, which fits one screen."""
    grid = _grid()
    files = result["input"]["files"]
    shown = ", ".join(printable(name) for name in files[:3])
    more = len(files[3:]) + result["input"].get("files_before", 0)
    grid.add_row("capture", Text(shown + (f" and {more} more" if more else "")))
    grid.add_row("read", Text(_input_line(result)))
    grid.add_row("RoCE", Text(_roce_line(result)))
    for condition in result["conditions"]:
        grid.add_row(Text("note", style="yellow"), Text(printable(condition["detail"])))
    if result["roce"]["packets"]:
        grid.add_row("ICRC", _icrc_line(result))
        grid.add_row("opcodes", Text(printable(_opcode_line(result))))
        grid.add_row("wire", Text(_overhead_line(result)))
        grid.add_row("congestion", Text(_congestion_line(result)))
        grid.add_row("connections", Text(str(_connections(result))))
        grid.add_row("findings", _findings_line(result))
    for problem in result["input"]["errors"]:
        name, why = printable(problem["file"]), printable(problem["error"])
        grid.add_row(Text("stopped", style="bold red"), Text(f"{name}: {why}"))
    return grid


def end(side: dict[str, Any], network: str = "") -> Text:
    """Address and QP of one end of a connection, with the network where they hold."""
    qpn = "?" if side["qpn"] is None else side["qpn"]
    return Text(f"{side['address']}\nqp {qpn}{network}")


def network(row: dict[str, Any]) -> str:
    """VLANs and tunnel of a connection."""
    tags = "".join(f" vlan {tag}" for tag in row["vlans"])
    tunnel = row["tunnel"]
    return tags + (f" {tunnel['kind']} {tunnel['id']}" if tunnel else "")


_NUMBERS = ("packets", "msgs", "goodput", "again", "lost", "NAK", "RNR", "p50", "p99")
_ADDRESS = 12
"""Columns that an address has at least; a longer one is folded."""


def connections(result: dict[str, Any], columns: int, most: int = 20) -> RenderableType:
    """A table of connections, one row per direction.

    Where that would cut a number, a line above the directions names the ends.
    """
    rows = result["connections"][:most]
    cells = [(str(row["id"]), *_numbers(way)) for row in rows for way in row["directions"]]
    widths = [max(map(len, column)) for column in zip(("id", *_NUMBERS), *cells, strict=True)]
    needed = sum(width + 1 for width in (*widths, _ADDRESS, _ADDRESS))
    lines = [_wide(rows)] if needed <= columns else _narrow(rows, columns)
    more = len(result["connections"]) - most + result["connections_unreported"]
    if more > 0:
        lines.append(Text(f"and {more} more", style="dim"))
    if evicted := result["connections_evicted"]:
        summary = (
            f"{evicted} left memory before their end, because too many were alive at once; "
            "packets that followed are listed as other connections"
        )
        lines.append(Text(summary, style="yellow"))
    return Group(*lines)


def _wide(connections: list[dict[str, Any]]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold", title="connections",
                  title_justify="left", title_style="bold", padding=(0, 1, 0, 0))  # fmt: skip
    table.add_column("id", justify="right")
    table.add_column("from", min_width=_ADDRESS, overflow="fold")
    table.add_column("to", min_width=_ADDRESS, overflow="fold")
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in connections:
        for way in row["directions"]:
            ends = (row["a"], row["b"]) if way["from"] == "a" else (row["b"], row["a"])
            table.add_row(str(row["id"]), end(ends[0], network(row)), end(ends[1]), *_numbers(way))
    return table


def _narrow(connections: list[dict[str, Any]], columns: int) -> list[RenderableType]:
    rows = []
    for row in connections:
        a, b = (end(row[side]).plain.replace("\n", " ") for side in "ab")
        name = grid.paragraph(f"{row['id']} a: {a}, b: {b}{network(row)}", columns).plain
        for way in row["directions"]:
            rows.append((name, way["from"], *_numbers(way)))
            name = ""
    heads = ("connection", "from", *(_SHORT.get(name, name) for name in _NUMBERS))
    return [Text("connections", style="bold"), *grid.fit(heads, rows, columns, keys=2)]


_SHORT = {"packets": "pkts"}


def _numbers(way: dict[str, Any]) -> tuple[str, ...]:
    """A direction's cells below _NUMBERS."""
    latency = way["latency_ns"]
    return (
        *(str(way["packets"]), str(way["messages"]), _bytes(way["goodput_bytes"])),
        *(str(way["retransmitted"]), str(way["missing"] - way["missed_by_capture"])),
        *(str(sum(way["naks"].values())), str(way["rnr"])),
        *(duration(latency["p50"]), duration(latency["p99"])),
    )


def _group_findings(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Findings of one rule and connection together, errors first."""
    order = ("error", "warning", "note")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: order.index(row["severity"])):
        key = (row["severity"], row["rule"], row["ambiguous"], row["connection"])
        # what is about no connection is not about the same thing
        groups.setdefault(key if row["connection"] is not None else (*key, id(row)), []).append(row)
    return list(groups.values())


_PACKETS_NAMED = 5
"""Packet numbers in the line of a group."""


def _also(group: list[dict[str, Any]]) -> str:
    """The packets of a group after its first, each once: one may have a finding several times."""
    named = list(dict.fromkeys(one["packet"] for one in group))[1:]
    if not named:
        return ""
    more = ", …" if len(named) > _PACKETS_NAMED else ""
    return f": packets {', '.join(map(str, named[:_PACKETS_NAMED]))}{more}"


def findings(result: dict[str, Any], most: int = 20) -> RenderableType:
    """The findings, errors first: one line for a rule and connection."""
    several = len(result["input"]["files"]) > 1
    lines: list[RenderableType] = [Text("findings", style="bold")]
    shown = 0
    for group in _group_findings(result["findings"])[:most]:
        row = group[0]
        shown += sum(one["count"] for one in group)
        where = f"packet {row['packet']}" if row["packet"] else "end of the connection"
        if several:
            where = f"{printable(row['file'])} {where}"
        line = Text(f"{row['severity']} ", style=_STYLE[row["severity"]])
        line.append(row["rule"], style="bold")
        line.append(" ambiguous" if row["ambiguous"] else "", style="italic")
        line.append(f" {where}: {printable(row['detail'])}", style="none")
        if len(group) > 1:
            line.append(f" ({len(group) - 1} more in this connection{_also(group)})", style="none")
        lines.append(line)
    more_findings = result["findings_total"] - shown
    if more_findings > 0:
        text = f"and {more_findings} more (--json lists them, --max-findings keeps more)"
        lines.append(Text(text, "dim"))
    counts = ", ".join(
        f"{row['rule']} {row['count']}" for row in result["finding_counts"] if row["count"]
    )
    lines.append(Text(f"by rule: {counts}", "dim"))
    return Group(*lines)


_EXCHANGES = 20


def exchanges(result: dict[str, Any], columns: int) -> RenderableType:
    """How connections were set up and ended, and why they were rejected."""
    rows = management.rows(result, _EXCHANGES)
    lines: list[RenderableType] = [Text("connection management", style="bold")]
    lines += grid.fit(management.COLUMNS, rows, columns)
    lines += [grid.paragraph(text, columns) for text in management.reasons(result, _EXCHANGES)]
    note = "READs: responder resources/initiator depth of REQ, REP"
    if left := management.count_left_out(result, _EXCHANGES):
        note += f"; and {left} more (--json lists 4096)"
    return Group(*lines, grid.paragraph(note, columns, "dim"))


def show(result: dict[str, Any], console: Console) -> None:
    """Print the verdict, the summary and all tables."""
    console.print(verdict(result, console.width))
    console.print()
    console.print(summary(result))
    if result["connections"]:
        console.print()
        console.print(connections(result, console.width))
    if table := _efficiency(result):
        console.print()
        console.print(table)
    if result["cm"]:
        console.print()
        console.print(exchanges(result, console.width))
    if result["findings"]:
        console.print()
        console.print(findings(result))
