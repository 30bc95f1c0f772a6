# SPDX-License-Identifier: GPL-2.0-or-later
"""Find what make has built for nodes: image, driver, probes."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocelab import json_text
from rocelab.conditions import lack, system_error
from rocelab.directory import read_named
from rocelab.errors import MissingError, UsageError
from rocelab.kernel_lines import DEFAULT_LINE
from rocelab.plans.catalog import PROBE_PROGRAMS
from rocelab.strict import quote
from rocelab.testbed.cache_folder import cache_dir

_MAX_FACTS_BYTES = 1 << 20
RDMA_CORE_TESTS = "/usr/src/rdma-core/tests"
"""Where an image has the tests of its rdma-core, if it has them (tools/node/lines/)."""


_RECIPE = Path("tools/node/build.py")
"""A file by which the folder of the sources is known."""


_PACKAGE_ROOT = Path("tools/rocelab/src/rocelab/testbed")
"""Where this module's folder is in a checkout."""


def _checkout() -> Path | None:
    """Return the checkout that this package runs from, as an editable install does.

    Nothing is searched for: a parent of the current folder may be another user's, and make runs
    what is in the sources.
    """
    here = Path(__file__).resolve().parent
    if here.parts[-len(_PACKAGE_ROOT.parts) :] != _PACKAGE_ROOT.parts:
        return None
    folder = here.parents[len(_PACKAGE_ROOT.parts) - 1]
    return folder if (folder / _RECIPE).exists() else None


def use_source(folder: Path) -> None:
    """Take the sources from a folder, here and in what this process starts. Raises UsageError."""
    if not (folder / _RECIPE).exists():
        raise UsageError(
            f"{quote(str(folder))} has no sources of driver and probes",
            cause="it is no rocelab checkout",
            action="Name a checkout with --source.",
        )
    os.environ["ROCELAB_SOURCE"] = str(folder.absolute())


def _named_source() -> Path | None:
    """Return $ROCELAB_SOURCE. Raises MissingError if no sources are there."""
    named = os.environ.get("ROCELAB_SOURCE")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_absolute() or not (folder / _RECIPE).exists():
        raise MissingError(
            f"{folder} has no sources of driver and probes",
            cause="ROCELAB_SOURCE names no rocelab checkout, or names it by a relative path",
            action="Set ROCELAB_SOURCE to the absolute path of a checkout.",
        )
    return folder


def _installed_source() -> Path | None:
    """Return what `make install` puts next to the virtual environment."""
    folder = Path(sys.prefix).parent / "source"
    return folder if (folder / _RECIPE).exists() else None


def source_dir() -> Path:
    """Return the folder with the sources of driver and probes. Raises MissingError."""
    folder = _named_source() or _checkout() or _installed_source()
    if folder is None:
        raise MissingError(
            "the sources of driver and probes are not here",
            cause="this is neither a rocelab checkout nor an installation by `make install`",
            action="Name a checkout: `rocelab --source DIR …`, or ROCELAB_SOURCE.",
        )
    return folder


def build_dir() -> Path:
    """Return the folder of what make builds: $ROCELAB_BUILD, the checkout's, or the user's."""
    if named := os.environ.get("ROCELAB_BUILD"):
        return Path(named)
    folder = _named_source() or _checkout()
    return folder / "build" if folder else cache_dir() / "build"


def _make(target: str) -> str:
    """Return the command that builds a target."""
    if source := _named_source():
        return f"make {shlex.join(['-C', str(source)])} {target}"
    if _checkout() is None and (source := _installed_source()):
        where = shlex.join(["-C", str(source), f"BUILD={build_dir()}"])
        return f"make {where} SKIP_APT=1 {target}"
    return f"make {target}"


def _existing(path: Path, target: str) -> Path:
    try:
        path.stat()
    except FileNotFoundError as error:
        raise MissingError(
            f"{path} cannot be used: {error.strerror}",
            cause="it was not built yet, or ROCELAB_BUILD names another folder",
            action=f"Run `{_make(target)}`.",
        ) from error
    except OSError as error:
        raise system_error(
            error, f"cannot use {path}", action=f"Correct that, or run `{_make(target)}`."
        ) from error
    return path


def facts(path: Path) -> dict[str, Any]:
    """Return what a build says of itself. Raises MissingError."""
    try:
        return json_text.parse(read_named(path, limit=_MAX_FACTS_BYTES))
    except (OSError, ValueError) as error:
        raise lack(error, f"cannot read {path}") or MissingError(
            f"{path} cannot be used",
            cause=f"it is damaged: {error}",
            action="Build it again: remove that folder, and run `make setup probes`.",
        ) from error


@dataclass(frozen=True)
class Driver:
    """A built rdma_rxe module."""

    module: Path
    release: str
    patch_id: str
    """First 12 hexadecimal digits of the patch series' hash; empty for a stock build."""

    @property
    def crc_by(self) -> str:
        """What computes the ICRC, by what the module imports: the crypto API, or crc32_le()."""
        imports = self.module.read_bytes()
        return "crypto API" if b"crypto_alloc_shash" in imports else "crc32_le()"


def image(line: str) -> Path:
    """Return the folder of a kernel line's node image (tools/node/build.py)."""
    return _existing(build_dir() / "image" / line, f"image LINE={line}").resolve()


def driver(line: str, variant: str = "instrumented") -> Driver:
    """Return the driver of a kernel line; kernel/Makefile lists the variants."""
    chosen = "" if variant == "instrumented" else f" VARIANT={variant}"
    return driver_in(build_dir() / "kernel" / line / variant, f"module LINE={line}{chosen}")


def driver_in(folder: Path, target: str) -> Driver:
    """Return the driver that kernel/Makefile built in a folder; `target` is make's."""
    module = _existing(folder / "rdma_rxe.ko", target)
    built = facts(folder / "build.json")
    return Driver(module, str(built.get("kernel_release")), str(built.get("patch_id")))


def probe(name: str, line: str = DEFAULT_LINE) -> Path:
    """Return a probe's program, such as `rxestat`, built in the image of a kernel line."""
    return _existing(build_dir() / "ebpf" / line / name, f"probes LINE={line}")


def probes(line: str = DEFAULT_LINE) -> list[Path]:
    """Return `PROBE_PROGRAMS`, built in the image of a kernel line."""
    return [probe(name, line) for name in PROBE_PROGRAMS]


def mpibench(line: str = DEFAULT_LINE) -> Path:
    """Return our MPI benchmark, built in the image of a kernel line."""
    return _existing(build_dir() / "mpibench" / line / "mpibench", f"mpibench LINE={line}")


def pingpong(line: str = DEFAULT_LINE) -> Path:
    """Return our ping-pong over TCP and verbs, built in the image of a kernel line."""
    return _existing(build_dir() / "pingpong" / line / "pingpong", f"pingpong LINE={line}")


def quick_clock(line: str = DEFAULT_LINE) -> Path:
    """Return what spares emulated nodes perftest's spins, built in the image of a kernel line."""
    return _existing(build_dir() / "perftest" / line / "quick_clock.so", f"perftest LINE={line}")


def check_program(name: str, line: str = DEFAULT_LINE) -> Path:
    """Return a program of tools/drivercheck, built in the image of a kernel line."""
    return _existing(build_dir() / "drivercheck" / line / name, f"drivercheck LINE={line}")


def rdma_core_tests(line: str) -> bool:
    """Whether the image of a kernel line has rdma-core's tests."""
    return (image(line) / "root" / RDMA_CORE_TESTS.lstrip("/")).is_dir()


def lockstep() -> Path:
    """Return QEMU's plugin that keeps two machines on one virtual clock."""
    return _existing(build_dir() / "lockstep" / "lockstep.so", "lockstep")


def programs(line: str = DEFAULT_LINE) -> list[Path]:
    """Return what is installed on every node: `PROBE_PROGRAMS`, our benchmarks, quick_clock.so."""
    return [*probes(line), mpibench(line), pingpong(line), quick_clock(line)]
