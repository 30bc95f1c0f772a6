# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's own command in a plan: strict reading, words, and numbers found in its output."""

from __future__ import annotations

import json
import time

import pytest

from rocelab.errors import CellError, UsageError
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job, Measurement
from rocelab.plans.catalog import TESTS
from rocelab.plans.command import CommandPlan
from rocelab.plans.plan import Plan
from rocelab.plans.steps import message_bytes

HEAD = """
[plan]
name = "mine"
transports = ["rxe-v2"]
[testbed.faults.gone]
action = "vanish"
[testbed.faults.dead]
action = "kill"
[[benchmark]]
tool = "command"
"""
TIME = 'test = "time"\n[benchmark.command]\nclient = ["c", "-v", "-v", "{peer}"]\n'


def plan(text: str) -> Plan:
    return plan_file.from_toml(HEAD + text, "p.toml")


def read(test: str, said: str, *, wall_ns: int = 0, **how: str) -> Measurement:
    job = Job(
        *(TESTS["command", test], 64, 10, 1, 14, 5001, End("10.0.0.1"), End("10.0.0.2")),
        command=CommandPlan(("c",), **how),
        wall_ns=wall_ns,
    )
    return TOOLS["command"].parse(job, said)


def test_a_plan_with_a_command_survives_run_json() -> None:
    parsed = plan(
        'test = "latency"\nsizes = [2, 64]\nfaults = ["gone"]\n'
        '[benchmark.parameters]\nmode = ["a", "b-c"]\ndepth = [1, 16]\n'
        '[benchmark.command]\nclient = ["c", "{mode}", "x{depth}{size}"]\n'
        'server = ["s", "{mode}"]\n'
        "ready = 'line:up'\nregex = 'lat (?P<value>[0-9.]+)'\nunit = 'us'\nmay_fail = true\n"
    )
    labels = [benchmark.title for benchmark in parsed.benchmarks]
    assert labels == [f"latency-mode{m}depth{d}" for m in ("a", "bc") for d in (1, 16)]
    last = parsed.benchmarks[-1]
    assert last.command is not None
    assert (last.command.client, last.command.server) == (("c", "b-c", "x16{size}"), ("s", "b-c"))
    assert last.ends_with_error
    assert not last.measures_its_end
    assert message_bytes(last, last.sizes) is None
    again = json.loads(json.dumps(parsed.to_dict()))
    assert plan_file.from_dict(again, "run.json") == parsed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('test = "time"\n', "command.client: is missing"),
        ('test = "time"\n[benchmark.command]\nclient = []\n', "names no command"),
        ('test = "time"\n[benchmark.command]\nclient = ["a", 1]\n', "not a list of strings"),
        ('test = "time"\n[benchmark.command]\nclient = ["a\\u0000"]\n', "null character"),
        (TIME + 'ready = "tcp:1"\n', "there is no server"),
        (TIME + 'server = ["s"]\nready = "soon"\n', "says nothing to wait for"),
        (TIME + 'unit = "s"\n', "measured in seconds"),
        (TIME + 'json = "a"\n', "unit: is missing"),
        (TIME + 'json = "a b"\n', "is not a path"),
        (TIME + 'messages = "a"\n', "place in JSON"),
        (TIME + "json = 'a'\nregex = '(?P<value>x)'\nunit = 's'\n", "value is read from JSON"),
        (TIME + "regex = 'x'\nunit = 's'\n", "has no group 'value'"),
        (TIME + "regex = '(?P<value>x)(?=y)'\nunit = 's'\n", "look-around"),
        (TIME + "regex = '(?P<value>x'\nunit = 's'\n", "unclosed group"),
        (TIME + "json = 'a'\nunit = 'MB/s'\n", "unknown value 'MB/s'"),
        (TIME.replace("time", "rate"), "json: is missing"),
        ('test = "time"\nparameters = { size = [1] }\n' + TIME[14:], "cannot name a parameter"),
        ('test = "time"\nparameters = { x = [] }\n' + TIME[14:], "the list is empty"),
        (f'test = "time"\nparameters = {{ x = {list(range(65))} }}\n' + TIME[14:], "65 benchmarks"),
        (
            'test = "time"\nparameters = { x = ["' + "a" * 20 + '"] }\n' + TIME[14:],
            "longer than 20",
        ),
        ('test = "time"\nparameters = { x = ["-", "+"] }\n' + TIME[14:], "appears twice"),
        ('test = "time"\nfaults = ["dead"]\n' + TIME[14:], "server's process"),
        *((TIME + f'folder = "{out}"\n', "leads out") for out in ("/root", "..", "a/../../b")),
    ],
)
def test_what_a_plan_may_not_say(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(text)
    assert says in f"{caught.value.what} {caught.value.cause}"


def test_its_words_know_the_step() -> None:
    (benchmark,) = plan(
        TIME.replace("{peer}", "{peer}:{tcp_port} {device}/{gid} {address} {netdev} {size} {other}")
    ).benchmarks
    ends = End("10.0.0.1", "rxe0", 1, 3, netdev="data0"), End("10.0.0.2", "rxe1", 1, 5)
    job = Job(TESTS["command", "time"], 64, 10, 1, 14, 5001, *ends, command=benchmark.command)
    assert TOOLS["command"].client(job)[-1] == "10.0.0.2:5001 rxe0/3 10.0.0.1 data0 64 {other}"
    assert TOOLS["command"].server_argv(job) == ()


@pytest.mark.parametrize(
    ("test", "unit", "metric", "value", "in_unit"),
    [
        ("latency", "us", "latency.mean", 1500, "ns"),
        ("round_trip", "ms", "latency.mean", 1.5e6, "ns"),
        ("bandwidth", "MiB/s", "bandwidth", 1.5 * (1 << 20), "bytes/s"),
        ("bandwidth", "Gbit/s", "bandwidth", 1.5e9 / 8, "bytes/s"),
        ("rate", "k/s", "application.rate", 1500, "1/s"),
        ("time", "s", "application.time", 1.5e9, "ns"),
    ],
)
def test_units(test: str, unit: str, metric: str, value: float, in_unit: str) -> None:
    measurement = read(test, '{"a": [{"b": 1.5}]}', json="a.0.b", unit=unit)
    [one] = measurement.values
    assert (one.metric, one.value, one.unit) == (metric, value, in_unit)
    assert one.kind == TESTS["command", test].kind


def test_numbers_in_json() -> None:
    measurement = read("rate", 'log\n{"r": 2, "n": 7}\n', json="r", messages="n", unit="1/s")
    assert (measurement.values[0].value, measurement.messages, measurement.sent) == (2, 7, 7)


def test_numbers_in_lines() -> None:
    said = "lat 9\nlat: 1.5 us, 20 sent\nlat: 2.5 us, 30 sent\nend\n"
    how = {"regex": r"lat: (?P<value>\S+) us, (?P<messages>\d+)", "unit": "us"}
    measurement = read("latency", said, **how)
    assert (measurement.values[0].value, measurement.sent) == (2500, 30)


def test_how_long_it_ran() -> None:
    [one] = read("time", "whatever", wall_ns=5).values
    assert (one.metric, one.value, one.unit) == ("application.time", 5, "ns")


@pytest.mark.parametrize(
    ("said", "how"),
    [
        ("", {"json": "a"}),
        ("[" * 100_000, {"json": "a"}),
        ('{"a": true}', {"json": "a"}),
        ('{"a": {}}', {"json": "a"}),
        ('{"a": "nan"}', {"json": "a"}),
        ('{"a": -1}', {"json": "a"}),
        ('{"a": [1]}', {"json": "a.1"}),
        ('{"a": 1}', {"json": "a", "messages": "b"}),
        ("no", {"regex": "(?P<value>[0-9]+)"}),
        ("x1e999", {"regex": "x(?P<value>.+)"}),
        ("", {}),
    ],
)
def test_output_without_its_number(said: str, how: dict[str, str]) -> None:
    with pytest.raises(CellError):
        read("time", said, unit="s" if how else "", **how)


def test_no_expression_takes_long() -> None:
    """A stranger's run folder has both the expression and the text."""
    began = time.monotonic()
    with pytest.raises(CellError):
        read("time", "a" * 1_000_000, regex="^(?P<value>(a|a)*)*b$", unit="s")
    assert time.monotonic() - began < 20
