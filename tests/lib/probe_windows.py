# SPDX-License-Identifier: GPL-2.0-or-later
"""A probe under --control on a node, for tests, and what the kernel holds of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rocelab.testbed.node import Completed, Node

# someone holds the pipe's other end open: its end is the end of the probe's standard input
_START = (
    'mkfifo "$0.in"; tail -f /dev/null > "$0.in" & echo $! > "$0.holder"; '
    'exec "$@" < "$0.in" > "$0.out" 2> "$0.err"'
)
_SAY = (
    'n=$(($(wc -l < "$0.err") + 1)); printf "%s" "$2" > "$0.in"; '
    'until tail -n "+$n" "$0.err" | grep -E "^$1: ($3|error: )"; do sleep 0.02; done'
)
_UNTIL_READY = 'until grep -q "^$1: ready" "$0.err"; do sleep 0.05; done'


class Windows:
    """A probe that reads commands."""

    def __init__(self, node: Node, program: str, *options: str) -> None:
        self.node, self.program = node, program
        self.path = f"/tmp/windows.{program}"
        # before, or an earlier probe's words would be taken for this one's
        self._run('rm -f "$0".*')
        self.process = node.start(["sh", "-c", _START, self.path, program, "--control", *options])
        self._run(_UNTIL_READY, timeout=180)

    def _run(self, script: str, *words: str, timeout: float = 120) -> str:
        argv = ["sh", "-c", script, self.path, self.program, *words]
        return self.node.run(argv, timeout=timeout).stdout

    def say(self, text: str, answer: str) -> str:
        """Write to its standard input; returns the answer, or the error, without its name."""
        output = self._run(_SAY, text, answer).splitlines()
        return output[-1].removeprefix(f"{self.program}: ")

    def start(self, file: str = "") -> None:
        """Begin a window."""
        assert self.say(f"start {file}\n", "started") == "started", self.errors()

    def stop(self) -> None:
        """End it."""
        assert self.say("stop\n", "stopped") == "stopped", self.errors()

    def hold(self) -> None:
        """End it; what detaches slowly may stay attached."""
        assert self.say("hold\n", "held") == "held", self.errors()

    def documents(self) -> list[dict[str, Any]]:
        """All reports until now."""
        text = self.node.run(["cat", f"{self.path}.out"]).stdout
        return [json.loads(line) for line in text.splitlines()]

    def errors(self) -> str:
        """What it wrote to standard error."""
        return self.node.run(["cat", f"{self.path}.err"]).stdout

    def end_of_input(self) -> Completed:
        """End its standard input, and wait for it."""
        self.node.run(["sh", "-c", 'kill "$(cat "$0.holder")"', self.path])
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """SIGKILL, also after its end."""
        self.process.kill()
        self.node.run(["sh", "-c", 'kill "$(cat "$0.holder")"', self.path], check=False)


@contextmanager
def windows(node: Node, program: str, *options: str) -> Iterator[Windows]:
    """Run a probe that waits for commands; it is killed with the context."""
    probe = Windows(node, program, *options)
    try:
        yield probe
    finally:
        probe.kill()


def links(node: Node) -> list[str]:
    """Return the BPF links that the kernel holds; nobody else's are on a node."""
    listed = json.loads(node.run(["bpftool", "-j", "link", "list"]).stdout)
    return [json.dumps(link) for link in listed]


_READ_KEYS = """
import struct, sys
wanted = {f"__tracepoint_{event}": event for event in sys.argv[1:]}
rows = (line.split() for line in open("/proc/kallsyms"))
symbols = {wanted[row[2]]: int(row[0], 16) for row in rows if row[2] in wanted}
core = open("/proc/kcore", "rb", buffering=0)
header = core.read(64)
core.seek(*struct.unpack_from("<Q", header, 32))
count, = struct.unpack_from("<H", header, 56)
segments = [struct.unpack("<IIQQQQQQ", core.read(56)) for _ in range(count)]
for event, symbol in symbols.items():
    # struct tracepoint begins with its name and its static key, and that with its count
    address = symbol + 8
    for _, _, offset, begin, _, size, _, _ in segments:
        if begin <= address < begin + size:
            core.seek(offset + address - begin)
            print(event, *struct.unpack("<i", core.read(4)))
"""


def keys_of(node: Node, events: Iterable[str]) -> dict[str, int]:
    """Return events' static keys, as the kernel has them in memory: 0 while they are off."""
    output = node.run(["python3", "-c", _READ_KEYS, *events]).stdout
    counts = {event: int(count) for event, count in map(str.split, output.splitlines())}
    assert set(counts) == set(events), output
    return counts
