#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetch files of the very kernel source that a node image's kernel was built from."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

LINES = Path(__file__).resolve().parents[1] / "node/lines"


def fail(what: str, cause: str, action: str) -> None:
    """Say what failed, why probably, and what to do; end with exit code 3."""
    print(
        f"kernel source: {what}\n  likely cause: {cause}\n  what to do: {action}", file=sys.stderr
    )
    sys.exit(3)


def source_version(image: Path) -> tuple[str, str]:
    """The source package that the image's kernel was built from, and its version."""
    package = json.loads((image / "image.json").read_text())["kernel_source"]
    version = (image / "root/usr/src" / package / "rocelab-version").read_text().strip()
    return package, version


def _download(line: str, image: Path, work: Path) -> Path:
    """The package's archive of the source, in `work`."""
    recipe = tomllib.loads((LINES / f"{line}.toml").read_text())
    package, version = source_version(image)
    tar = work / "package.tar"
    command = ["mmdebstrap", "--variant=extract", "--format=tar", f"--include={package}={version}"]
    command += ['--aptopt=Acquire::Languages "none"', recipe["suite"], str(tar)]
    command += [f"deb {url} {suite} main" for url, suite in recipe["mirrors"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(
            f"{package} {version} cannot be had: {done.stderr.strip()[-500:]}",
            "no mirror can be reached, or they have a newer build than the image",
            f"try again; else remove {image}, run `make image`, and then try again",
        )
    archive = work / f"{package}.tar.xz"
    subprocess.run(
        ["tar", "-xf", tar, "-C", work, "--strip-components=3", f"./usr/src/{archive.name}"],
        check=True,
    )
    tar.unlink()
    return archive


def fetch(line: str, image: Path, out: Path, members: Sequence[str] = ()) -> None:
    """Unpack the source, or only the members that match those patterns, into the folder `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        work = Path(folder)
        archive = _download(line, image, work)
        command = ["tar", "-xJf", str(archive), "-C", str(work / "source")]
        command += ["--strip-components=1", "--wildcards", *(f"*/{name}" for name in members)]
        (work / "source").mkdir()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # a pattern that matches nothing: older kernels have not everything
        if done.returncode and "Not found in archive" not in done.stderr:
            fail(
                f"{archive.name} cannot be unpacked: {done.stderr}", "the disk is full", "try again"
            )
        shutil.rmtree(out, ignore_errors=True)
        (work / "source").rename(out)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--line", required=True)
    parser.add_argument("--image", type=Path, required=True, help="folder of tools/node/build.py")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument("members", nargs="+", help="patterns of paths in the source")
    arguments = parser.parse_args()
    image, out = arguments.image.resolve(), arguments.out.absolute()
    # kept for as long as the image's kernel is of that version
    version = " ".join([*source_version(image), *arguments.members])
    stamp = out / ".version"
    if not (stamp.exists() and stamp.read_text() == version):
        print(f"kernel source: fetching {version}, a minute", file=sys.stderr, flush=True)
        fetch(arguments.line, image, out, arguments.members)
        stamp.write_text(version)


if __name__ == "__main__":
    main()
