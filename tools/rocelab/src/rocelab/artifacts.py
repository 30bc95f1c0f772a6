# SPDX-License-Identifier: GPL-2.0-or-later
"""Where make has put what nodes need: image, driver, probes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from rocelab.errors import MissingError

LINES = ("6.1", "6.12", "7.x")
"""Kernel lines with a patch series (kernel/patches/) and an image (tools/node/lines/)."""
DEFAULT_LINE = "6.12"
PROBES = ("rxestat", "rxedump", "rxecpu")
"""Programs of ebpf/ that every prepared node has."""


def build_dir() -> Path:
    """The `build` folder of the checkout: $ROCELAB_BUILD, or found from here or upwards."""
    if named := os.environ.get("ROCELAB_BUILD"):
        return Path(named)
    # an editable installation lies inside the checkout; a wheel is run from within one
    for start in (Path(__file__).resolve(), Path.cwd() / "x"):
        for folder in start.parents:
            if (folder / "tools/node/build.py").exists():
                return folder / "build"
    raise MissingError(
        "there is no rocelab checkout here",
        cause="the embedded testbed is built by make, from a clone",
        action="run from inside a clone, or set ROCELAB_BUILD to its build folder",
    )


def _existing(path: Path, target: str) -> Path:
    if not path.exists():
        raise MissingError(
            f"{path} is missing",
            cause=f"`make {target}` has not run",
            action=f"run `make {target}`",
        )
    return path


@dataclass(frozen=True)
class Driver:
    """A built rdma_rxe module."""

    module: Path
    release: str
    patch_id: str
    """First 12 hexadecimal digits of the hash over the series; empty for a stock build."""


def image(line: str) -> Path:
    """The node image's folder for a kernel line (tools/node/build.py)."""
    return _existing(build_dir() / "image" / line, f"image LINE={line}").resolve()


def driver(line: str, variant: str = "instrumented") -> Driver:
    """The driver of a kernel line; `variant` as in kernel/Makefile."""
    folder = build_dir() / "kernel" / line / variant
    module = _existing(folder / "rdma_rxe.ko", f"module LINE={line}")
    facts = json.loads((folder / "build.json").read_text())
    return Driver(module, facts["kernel_release"], facts["patch_id"])


def probe(name: str, line: str = DEFAULT_LINE) -> Path:
    """A probe's program, e.g. `rxestat`, built in the image of a kernel line."""
    return _existing(build_dir() / "ebpf" / line / name, f"probes LINE={line}")


def probes(line: str = DEFAULT_LINE) -> list[Path]:
    """The programs of all of PROBES, built in the image of a kernel line."""
    return [probe(name, line) for name in PROBES]


def mpibench(line: str = DEFAULT_LINE) -> Path:
    """The MPI benchmarks, built in the image of a kernel line."""
    return _existing(build_dir() / "mpibench" / line / "mpibench", f"mpibench LINE={line}")


def programs(line: str = DEFAULT_LINE) -> list[Path]:
    """What a prepared node gets: all of PROBES, and the MPI benchmarks."""
    return [*probes(line), mpibench(line)]
