#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetch files from the source of a node image's kernel."""

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
    """Report what failed, the likely cause and what to do; exit with code 3."""
    print(
        f"kernel source: {what}\n  likely cause: {cause}\n  what to do: {action}", file=sys.stderr
    )
    sys.exit(3)


def source_version(image: Path) -> tuple[str, str]:
    """Return the source package of the image's kernel, and its version."""
    package = json.loads((image / "image.json").read_text())["kernel_source"]
    version = (image / "root/usr/src" / package / "rocelab-version").read_text().strip()
    return package, version


def _download(line: str, image: Path, work: Path) -> Path:
    """Download the package's source archive to `work`."""
    recipe = tomllib.loads((LINES / f"{line}.toml").read_text())
    package, version = source_version(image)
    tar = work / "package.tar"
    command = ["mmdebstrap", "--variant=extract", "--format=tar", f"--include={package}={version}"]
    command += ['--aptopt=Acquire::Languages "none"', recipe["suite"], str(tar)]
    command += [f"deb {url} {suite} main" for url, suite in recipe["mirrors"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(
            f"cannot download {package} {version}: {done.stderr.strip()[-500:]}",
            "no mirror can be reached, or they have a newer build than the image",
            f"try again; if it still fails, remove {image}, run `make image` and try again",
        )
    archive = work / f"{package}.tar.xz"
    subprocess.run(
        ["tar", "-xf", tar, "-C", work, "--strip-components=3", f"./usr/src/{archive.name}"],
        check=True,
    )
    tar.unlink()
    return archive


def fetch(line: str, image: Path, out: Path, members: Sequence[str] = ()) -> None:
    """Unpack the source, or only members that match the patterns, into the folder `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        work = Path(folder)
        archive = _download(line, image, work)
        command = ["tar", "-xJf", str(archive), "-C", str(work / "source")]
        command += ["--strip-components=1", "--wildcards", *(f"*/{name}" for name in members)]
        (work / "source").mkdir()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # older kernels lack some files, so a pattern may match nothing
        if done.returncode and "Not found in archive" not in done.stderr:
            fail(f"cannot unpack {archive.name}: {done.stderr}", "the disk is full", "try again")
        shutil.rmtree(out, ignore_errors=True)
        (work / "source").rename(out)


def main() -> None:
    """Parse the command line and fetch what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--line", required=True)
    parser.add_argument("--image", type=Path, required=True, help="folder of tools/node/build.py")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument("members", nargs="+", help="patterns of paths in the source")
    arguments = parser.parse_args()
    image, out = arguments.image.resolve(), arguments.out.absolute()
    # reused as long as the image's kernel has that version
    version = " ".join([*source_version(image), *arguments.members])
    stamp = out / ".version"
    if not (stamp.exists() and stamp.read_text() == version):
        print(f"kernel source: fetching {version} (a minute)", file=sys.stderr, flush=True)
        fetch(arguments.line, image, out, arguments.members)
        stamp.write_text(version)


if __name__ == "__main__":
    main()
