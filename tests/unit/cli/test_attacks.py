# SPDX-License-Identifier: GPL-2.0-or-later
"""The attacks that are known, by machine: inputs and limits, over the commands.

test_hostile_paths.py sweeps paths, environments and streams, test_every_signal.py signals; here
each case is a process of its own, whose time, memory, exit code and remains are judged.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus import CAPTURES, frames
from slowness import slowness
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

SECONDS, MEMORY = 5.0, 500 << 20
"""Of the processor that docs/costs.md was measured on, and bytes, for any hostile input."""
CODES = {0, 1, 2, 3, 5}
HUNG = 120


@dataclass(frozen=True)
class Done:
    """How a process ended, and what it took."""

    code: int
    seconds: float
    memory: int
    said: str
    """On standard error."""
    printed: bytes
    """On standard output."""

    @property
    def faults(self) -> list[str]:
        """What no input may cause."""
        problems = [f"{word} in {self.said[-300:]}" for word in BUGS if word in self.said]
        if self.code not in CODES:
            problems.append(f"exit code {self.code}: {self.said[-300:]}")
        if self.seconds > SECONDS * slowness():
            problems.append(f"{self.seconds:.1f} s of the processor")
        if self.memory > MEMORY:
            problems.append(f"{self.memory >> 20} MiB")
        if self.code in (2, 3) and "what to do: " not in self.said and "Usage:" not in self.said:
            problems.append(f"no advice: {self.said[-300:]}")
        return problems


BUGS = ("Traceback", "internal error", "panicked", "Exception ignored")


def start(words: list[str], folder: Path, limit: Callable[[], None] | None = None) -> Started:
    """Start a command."""
    said, printed = folder / "said", folder / "printed"
    with said.open("wb") as file, printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rocelab", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=file,
            preexec_fn=limit,  # noqa: PLW1509 -- it only sets a limit
        )
    return Started(process, said, printed)


@dataclass(frozen=True)
class Started:
    """A command that runs."""

    process: subprocess.Popen[bytes]
    said: Path
    printed: Path

    def done(self) -> Done:
        """Wait for its end."""
        deadline, memory = time.monotonic() + HUNG, 0
        while True:
            # what wait4(2) tells contains the memory of this process before it became the other
            with contextlib.suppress(OSError, ValueError, StopIteration):
                lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
                line = next(line for line in lines if line.startswith("VmHWM:"))
                memory = max(memory, int(line.split()[1]) << 10)
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                self.process.kill()
            time.sleep(0.01)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        seconds = used.ru_utime + used.ru_stime
        said = self.said.read_text(errors="replace")
        printed = self.printed.read_bytes()
        return Done(self.process.returncode, seconds, memory, said, printed)


def all_at_once(cases: list[Callable[[], list[str]]]) -> list[str]:
    """Judge cases, two at a time; return all faults."""
    with ThreadPoolExecutor(2) as pool:
        return [fault for faults in pool.map(lambda case: case(), cases) for fault in faults]


def run_folder(folder: Path) -> Path:
    return Synthetic(
        transports=("tcp",), tests=("write_lat",), sizes=(64,), repetitions=1, traced=False
    ).write(folder)


# ---- inputs


def bomb(run: Path) -> None:
    """A table of a few kB with more rows than any run."""
    path = run / "results.parquet"
    row = pl.read_parquet(path).head(1)
    some = pl.concat([row] * 100_000, rechunk=True).lazy()
    pl.concat([some] * 30).sink_parquet(path)


def _shared_text(run: Path, *, as_category: bool) -> None:
    """Two million rows that share a text of 1 MB: 2 TB, where each has its copy."""
    row = pl.read_parquet(run / "results.parquet").head(1).to_arrow()
    none = pa.array([0]).take(pa.array([0] * 2_000_000))
    columns = {
        name: pa.DictionaryArray.from_arrays(none, pa.array(["x" * 1_000_000]))
        if name == "program"
        else row[name].combine_chunks().take(none)
        for name in row.column_names
    }
    # without the schema, a reader sees texts
    pq.write_table(pa.table(columns), run / "results.parquet", store_schema=as_category)


def categories(run: Path) -> None:
    _shared_text(run, as_category=True)


def long_texts(run: Path) -> None:
    _shared_text(run, as_category=False)


def long_number(run: Path) -> None:
    path = next((run / "cells").iterdir()) / "cell.json"
    path.write_text(path.read_text().replace('"size": 64', f'"size": {"9" * 400}'))


def many_values(run: Path) -> None:
    path = run / "run.json"
    path.write_text(path.read_text()[:-2] + ', "x": [' + "[]," * (20 << 20) + "0]}")


def deep(run: Path) -> None:
    path = run / "run.json"
    path.write_text(path.read_text()[:-2] + ', "x": ' + "[" * 90_000 + "]" * 90_000 + "}")


def many_cells(run: Path) -> None:
    path = run / "run.json"
    names = ",".join(f'"a-b.c.r{n}"' for n in range(300_000))
    path.write_text(path.read_text()[:-2] + f', "cells": [{names}]}}')


RUNS = (bomb, categories, long_texts, long_number, many_values, deep, many_cells)

HEAD = '[plan]\nname = "x"\nrepetitions = 99\ntransports = ["rxe-v2"]\n'
BENCHMARK = '[[benchmark]]\ntool = "perftest"\ntest = "write_lat"\nsizes = [64]\nlabel = "l{}"\n'
TOML = {
    "dots": "a." * 20_000 + "a=1",
    "brackets": "a=" + "[" * 100_000,
    "benchmarks": HEAD + "".join(map(BENCHMARK.format, range(12_000))),
    "sizes": HEAD + BENCHMARK.replace("64", ",".join(map(str, range(100_000)))),
    "digits": HEAD.replace("99", "9" * 5000),
    "tables": "".join(f"[t{n}]\n" for n in range(90_000)),
    "words": HEAD + "".join(f"k{n} = 1\n" for n in range(60_000)),
}


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def _pcap(*packets: bytes) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
    records = (struct.pack("<IIII", 0, 0, len(p), len(p)) + p for p in packets)
    return head + b"".join(records)


def captures() -> dict[str, bytes]:
    good = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
    packed = gzip.compress(good * 100)
    comment = b"rocelab " + b"a " * 16_000
    option = struct.pack("<HH", 1, len(comment))
    section = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = _interface()
    ng = section + interface
    packet = good[40 : 40 + struct.unpack_from("<I", good, 24 + 8)[0]]
    late = _enhanced(packet, time=(1 << 64) - 1)
    return {
        "cut gzip": packed[:-6],
        "zeros in gzip": gzip.compress(good[:24] + bytes(64 << 20)),
        "text": b"no capture\n" * 1000,
        "half a record": good[:-7],
        "a record of 4 GB": good + struct.pack("<IIII", 0, 0, 0xFFFFFFFF, 0xFFFFFFFF),
        "packets of nothing": _pcap(*[b""] * 200_000),
        "many connections": _pcap(*_sprayed(good, 50_000)),
        "a long comment": ng + _block(6, bytes(20) + option + comment),
        "blocks of nothing": ng + _block(0xBAD, b"") * 200_000,
        "times beyond any": section + _interface(14, struct.pack("<q", (1 << 63) - 1)) + late,
        "ticks of 2^-127 s": section + _interface(9, b"\xff") + late,
        "an interface's name": section + _interface(2, b"\x1b[2J" * 12_000) + late,
        "many interfaces": section + interface * 100_000 + _enhanced(packet, interface=99_999),
        "many sections": (ng + _enhanced(packet)) * 100_000,
        "a packet of no interface": section + _enhanced(packet, interface=5),
        "many VLANs": _pcap(*[bytes(12) + b"\x81\x00\x00\x01" * 15_000 + packet[12:]] * 200),
        "many IPv6 extensions": _pcap(*[_extended(8_000)] * 500),
        "fragments without end": _pcap(
            *(
                packet[:18] + struct.pack(">HH", number & 0xFFFF, 0x2000) + packet[22:]
                for number in range(100_000)
            )
        ),
        "any address": _pcap(
            *(
                packet[:26] + (number * 2_654_435_761 % (1 << 32)).to_bytes(4, "big") + packet[30:]
                for number in range(50_000)
            )
        ),
    }


def _interface(code: int = 0, value: bytes = b"") -> bytes:
    option = struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
    return _block(1, struct.pack("<HHI", 1, 0, 1 << 18) + option)


def _enhanced(packet: bytes, *, interface: int = 0, time: int = 0) -> bytes:
    head = struct.pack("<IIII", interface, time >> 32, time & 0xFFFFFFFF, len(packet))
    return _block(6, head + struct.pack("<I", len(packet)) + packet)


def _extended(count: int) -> bytes:
    """A frame whose UDP follows so many extension headers of IPv6."""
    following = bytes(8) * (count - 1) + bytes([17]) + bytes(7)
    udp = struct.pack(">HHHH", 1, 4791, 24, 0) + bytes(16)
    length = len(following) + len(udp)
    ip = struct.pack(">IHBB", 6 << 28, length, 0, 64) + bytes(32)
    return bytes(12) + b"\x86\xdd" + ip + following + udp


def _sprayed(good: bytes, count: int) -> list[bytes]:
    """One packet, to as many queue pairs."""
    length = struct.unpack_from("<I", good, 24 + 8)[0]
    packet = bytearray(good[40 : 40 + length])
    made = []
    for number in range(count):
        packet[14 + 20 + 8 + 5 : 14 + 20 + 8 + 8] = number.to_bytes(3, "big")
        made.append(bytes(packet))
    return made


def test_inputs(tmp_path: Path) -> None:
    """Each hostile input to each command that reads its kind."""
    cases: list[Callable[[], list[str]]] = []

    def add(name: str, words: list[str]) -> None:
        folder = tmp_path / f"case{len(cases)}"
        folder.mkdir()
        out = [word.replace("OUT", str(folder / "out")) for word in words]

        def case() -> list[str]:
            return [f"{words[0]} {name}: {why}" for why in start(out, folder).done().faults]

        cases.append(case)

    for made in RUNS:
        run = run_folder(tmp_path / made.__name__)
        made(run)
        # both read as `report` does, without drawing
        add(made.__name__, ["show", str(run)])
        add(made.__name__, ["compare", str(run), str(run)])
    for name, text in TOML.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        add(name, ["run", str(path)])
    add("words", ["hosts", "status", "--inventory", str(tmp_path / "words.toml")])
    for name, content in captures().items():
        path = tmp_path / f"{name}.pcap"
        path.write_bytes(content)
        add(name, ["analyze", str(path)])
        add(name, ["annotate", str(path), "-o", "OUT"])
    for name in ("text", "half a record"):
        add(f"trace {name}", ["join", str(CAPTURES / "testbed-write-lat-64.pcap"), "--trace",
                              str(tmp_path / f"{name}.pcap")])  # fmt: skip
    assert all_at_once(cases) == []


def _opposite(count: int) -> list[bytes]:
    """Requests and ACKs that have one PSN, and nothing in common but that."""
    net = frames.Net()
    request = frames.transport("RC_SEND_ONLY", 18, 100, b"", bytes(16), ack=1)
    answer = frames.transport("RC_ACKNOWLEDGE", 17, 100, frames.aeth(0x1F, 1))
    ways = (frames.frame(net, "a", request), frames.frame(net, "b", answer))
    return [
        packet[:47] + number.to_bytes(3, "big") + packet[50:]
        for packet in ways
        for number in range(count)
    ]


MANY = {
    "--json": 250 << 20,
    "--html OUT": 400 << 20,
    "--parquet OUT": 420 << 20,
}
"""Forms of results, and how much memory each may take."""


def test_many_connections(tmp_path: Path) -> None:
    """More than are listed, and than are followed at once; many may be partners."""
    good = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
    contents = {"alone": _sprayed(good, 150_000), "pairs": _opposite(60_000)}

    def case(name: str, form: str) -> list[str]:
        folder = tmp_path / name / form.split(maxsplit=1)[0].strip("-")
        folder.mkdir(parents=True)
        words = ["analyze", str(tmp_path / f"{name}.pcap"), "--no-icrc"]
        words += [word.replace("OUT", str(folder / "out")) for word in form.split()]
        done = start(words, folder).done()
        faults = done.faults
        if done.memory > MANY[form]:
            faults.append(f"{done.memory >> 20} MiB")
        return [f"{name} {form}: {why}" for why in faults]

    for name, packets in contents.items():
        (tmp_path / f"{name}.pcap").write_bytes(_pcap(*packets))
    cases = [("pairs", "--json"), *(("alone", form) for form in MANY)]
    assert all_at_once([lambda which=which: case(*which) for which in cases]) == []


# ---- limits

LINK = CAPTURES / "testbed-write-lat-64.pcap"
TRACED = CAPTURES / "testbed-rxedump-write-lat-64.pcapng"
WRITERS = {
    "analyze --html": ["analyze", "CAPTURE", "--html", "OUT/made"],
    "analyze --parquet": ["analyze", "CAPTURE", "--parquet", "OUT"],
    "analyze --json": ["analyze", "CAPTURE", "--json"],
    "annotate": ["annotate", "CAPTURE", "-o", "OUT/made"],
    "report --export": ["report", "RUN", "--export", "OUT"],
    "export": ["export", "LINK", "--trace", "TRACED", "--perfetto", "OUT/made"],
}
LIMITS = {
    "few files": (resource.RLIMIT_NOFILE, 8),
    "short files": (resource.RLIMIT_FSIZE, 512),
    "few addresses": (resource.RLIMIT_AS, 600 << 20),
    "enough addresses": (resource.RLIMIT_AS, 8 << 30),
    "little data": (resource.RLIMIT_DATA, 100 << 20),
    "enough data": (resource.RLIMIT_DATA, 512 << 20),
    "a small stack": (resource.RLIMIT_STACK, 128 << 10),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits(tmp_path: Path, limit: str) -> None:
    """Of the process: each command says what it lacks, and leaves nothing."""
    capture = shutil.copy(CAPTURES / "rc-v2-ipv4.pcap", tmp_path / "good.pcap")
    run = run_folder(tmp_path / "run")
    which, most = LIMITS[limit]

    def case(name: str) -> list[str]:
        folder = tmp_path / name.replace(" ", "")
        out = folder / "out"
        out.mkdir(parents=True)
        at = {"CAPTURE": str(capture), "RUN": str(run), "LINK": str(LINK), "TRACED": str(TRACED)}
        words = [at.get(word, word.replace("OUT", str(out))) for word in WRITERS[name]]
        done = start(words, folder, lambda: resource.setrlimit(which, (most, most))).done()
        # a library had its say before it ended the process
        ended = "the limit of memory is too low" in done.said
        faults = [
            f"{name}: {why}"
            for why in done.faults
            # what is printed has the limit, too; drawing alone takes 900 MiB
            if "MiB" not in why
            and (most > 512 or "advice" not in why)
            and not (ended and why.startswith("panicked"))
        ]
        if limit == "enough addresses" and done.code not in (0, 1):
            faults.append(f"{name}: exit code {done.code}: {done.said[-300:]}")
        left = [path.name for path in out.iterdir()]
        if done.code in (2, 3) and any(part.startswith(".") for part in left):
            faults.append(f"{name}: leaves {left}")
        return faults

    assert all_at_once([lambda name=name: case(name) for name in WRITERS]) == []


def test_the_current_folder_gives_no_module(tmp_path: Path) -> None:
    """Of what the installed command imports, and what it starts."""
    run = run_folder(tmp_path / "run")
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("sitecustomize", "usercustomize", "rocelab", "click", "polars", "json", "ssl"):
        (folder / name).mkdir()
        for file in (f"{name}.py", f"{name}/__init__.py"):
            (folder / file).write_text(f"import os\nos.mkdir({str(tmp_path / 'theirs ran')!r})\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for words in (["show", str(run)], ["analyze", str(LINK), "--html", "made"], ["status"]):
        done = subprocess.run(
            [Path(sys.executable).with_name("rocelab"), *words],
            cwd=folder,
            env=environment | {"XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "theirs ran").exists()


def test_a_limit_of_files_cuts_no_bytecode(tmp_path: Path) -> None:
    """Python reads a module's bytecode without asking whether all of it was written."""
    cached = tmp_path / "cached"
    made = str(tmp_path / "made")
    words = ["export", str(LINK), "--trace", str(TRACED), "--perfetto", made]
    subprocess.run(
        [sys.executable, "-m", "rocelab", *words],
        env=os.environ | {"PYTHONPYCACHEPREFIX": str(cached), "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)),
    )
    compiled = [path.name for path in cached.rglob("*.pyc")]
    assert any(name.startswith("conditions.") for name in compiled)
    assert not any(name.startswith("trace_events.") for name in compiled)


def test_a_capture_that_shrinks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from command_line import in_process as rocelab
    from rocelab.capture import annotate

    body = (CAPTURES / "rc-v2-ipv4.pcap").read_bytes()
    path = tmp_path / "short.pcap"
    path.write_bytes(body)
    whole = annotate.read_whole

    def shrinks(*words: object, **more: object) -> object:
        shrunk = whole(*words, **more)  # type: ignore[arg-type]
        length = struct.unpack_from("<I", body, 24 + 8)[0]
        path.write_bytes(body[: 40 + length])
        return shrunk

    monkeypatch.setattr(annotate, "read_whole", shrinks)
    answer = rocelab("annotate", "--json", str(path), "-o", str(tmp_path / "made"))
    assert answer.returncode == 1
    [error] = json.loads(answer.stdout)["errors"]
    assert "shorter" in error["error"]
