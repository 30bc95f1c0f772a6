#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Try the series on every kernel of its lines that Debian's pools hold today, and on mainline.

Prints what is new since kernel/seen.csv was written, with the changes of rxe. Exit code 1: a kernel
that was not known to be refused is refused, DKMS fails, or a kernel does not work; 3: the pools
cannot be asked, or do not give all packages.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import debian_pools
import mainline
import seen_kernels
from debian_pools import RXE, Kernel, Pools
from driver_build import NoPackagesError, Target, dkms_root
from kernel_boot import boots
from seen_kernels import MAINLINE, NO_LINE, Seen

TOP = Path(__file__).resolve().parents[2]
KERNEL, SEEN = TOP / "kernel", TOP / "kernel/seen.csv"
LINES = frozenset(path.name for path in (KERNEL / "patches/lines").iterdir())
URL = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git"


def say(text: str) -> None:
    """Report progress."""
    print(text, file=sys.stderr, flush=True)


def series() -> list[str]:
    """Return the patches for users; those for tests are not among them."""
    return [
        str(path)
        for group in ("fixes", "events", "v1")
        for path in sorted((KERNEL / "patches" / group).glob("*.patch"))
    ]


def first_refused_patch(tree: Path, line: str, version: str) -> str:
    """Return the first patch of the line's series that does not apply to a tree; "" if all do."""
    scripts = KERNEL / "scripts"
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        of_line = work / "series"
        words = ["sh", f"{scripts}/line.sh", f"{KERNEL}/patches/lines/{line}", str(of_line)]
        subprocess.run([*words, *series()], check=True)
        patches = sorted(map(str, of_line.glob("*.patch")))
        words = ["sh", f"{scripts}/apply.sh", str(tree), f"{work}/tree", version, "", *patches]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    match = re.search(r"(\d{4})-\S+\.patch does not apply", done.stderr)
    if done.returncode and not match:
        sys.exit(done.stderr)
    return match[1] if match else ""


class Watch:
    """One look at the kernels of today; drivers are kept in a cache by the hash of their source."""

    def __init__(self, cache: Path, seen: list[Seen]) -> None:
        """`seen` is what the last look found."""
        cache.mkdir(parents=True, exist_ok=True)
        self._cache = cache
        self._seen = seen
        self._known = {(row.package, row.version): row.rxe for row in seen}
        self._fits: dict[tuple[str, str], str] = {}
        self.changes: dict[str, list[str]] = {}
        """What became of rxe, by version, where that was fetched."""

    def tree(self, digest: str) -> Path:
        """Return where a driver's tree is."""
        return self._cache / digest

    def _keep(self, fetched: Path) -> str:
        digest = seen_kernels.digest(fetched / RXE)
        if not self.tree(digest).exists():
            fetched.rename(self.tree(digest))
        return digest

    def _row(self, kernel: Kernel, line: str, digest: str) -> Seen:
        if (digest, line) not in self._fits:
            self._fits[digest, line] = first_refused_patch(self.tree(digest), line, kernel.version)
        releases = " ".join(kernel.releases)
        return Seen(
            kernel.package, kernel.version, line, digest, self._fits[digest, line], releases
        )

    def debian(self, pools: Pools, kernel: Kernel, line: str) -> Seen:
        """Look at a kernel of Debian's."""
        digest = self._known.get((kernel.package, kernel.version), "")
        if not digest or not self.tree(digest).exists():
            say(f"fetching {kernel.package} {kernel.version}")
            with tempfile.TemporaryDirectory(dir=self._cache) as name:
                fetched = Path(name) / "tree"
                pools.fetch(kernel, fetched)
                changelog = (fetched / "changelog").read_text()
                digest = self._keep(fetched)
            older = [row.version for row in self._seen if row.line == line]
            before = [each for each in older if _is_older(each, kernel.version)]
            if before and (kernel.package, kernel.version) not in self._known:
                since = max(before, key=debian_pools.in_order)
                self.changes[kernel.version] = debian_pools.changes(changelog, since)
        return self._row(kernel, line, digest)

    def mainline(self, url: str) -> Seen | None:
        """Look at mainline's newest commit; None if its server cannot be reached."""
        commit = mainline.head(url)
        if commit is None:
            return None
        last = next((row for row in self._seen if row.package == MAINLINE), None)
        if last and commit.startswith(mainline.commit_of(last.version)):
            version, digest = last.version, last.rxe
        else:
            version, digest = "", ""
        if not digest or not self.tree(digest).exists():
            say(f"fetching {url}")
            with tempfile.TemporaryDirectory(dir=self._cache) as name:
                fetched = Path(name) / "tree"
                version = mainline.fetch(url, fetched, last.version if last else "")
                if last and version != last.version:
                    self.changes[version] = mainline.changes(fetched, last.version)
                digest = self._keep(fetched)
        kernel = Kernel(MAINLINE, version)
        return self._row(kernel, seen_kernels.line_of(version, LINES), digest)


def _is_older(version: str, than: str) -> bool:
    return debian_pools.in_order(version) < debian_pools.in_order(than)


@dataclass
class Outcome:
    """What is to be said of kernels that were tried, or could not be."""

    failed: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)


def build_and_boot(watch: Watch, pools: Pools, rows: list[Seen], booted: list[Seen]) -> Outcome:
    """Build with DKMS for every release of the kernels that fit, and boot some."""
    outcome = Outcome()
    for row in rows:
        for release in row.releases.split() if not row.refused else []:
            suite = pools.suite(f"linux-headers-{release}", row.version)
            image, tree = pools.image(release), watch.tree(row.rxe)
            target = Target(release, row.line, row.package, row.version, suite, image, tree)
            say(f"building for {release} of {suite}")
            try:
                with dkms_root(target, boot=row in booted) as root:
                    if root is None:
                        outcome.failed.append(f"does not build: {release}")
                    elif row in booted:
                        say(f"booting {release}")
                        if not boots(target, root):
                            outcome.failed.append(f"does not work: {release}")
            except NoPackagesError:
                outcome.untried.append(
                    f"not tried: {release}, because apt cannot install its packages from {suite} "
                    "(its messages are above)"
                )
    return outcome


def newest(rows: list[Seen]) -> list[Seen]:
    """Return the newest kernel of each line that fits and that Debian has built."""
    usable = [row for row in rows if row.releases and not row.refused]
    return list({row.line: row for row in usable}.values())


def wrong_choices(rows: list[Seen], dkms: str) -> list[str]:
    """Compare the kernels for which DKMS builds with those that fit; say where they differ."""
    match = re.search(r'^BUILD_EXCLUSIVE_KERNEL="(.*)"$', dkms, re.MULTILINE)
    assert match
    return [
        f"DKMS builds for {release}, which the series does not fit"
        if row.refused
        else f"DKMS leaves alone {release}, which the series fits"
        for row in rows
        for release in row.releases.split()
        if bool(re.match(match[1], release)) == bool(row.refused)
    ]


def report(rows: list[Seen], fresh: list[Seen], changes: dict[str, list[str]]) -> None:
    """Print what there is, and what is new."""
    for row in rows:
        says = f"{row.refused} does not apply" if row.refused else "fits"
        new = "  NEW" if row in fresh else ""
        print(f"{row.line:5} {row.package:18} {row.version:22} {row.rxe}  {says}{new}")
    for version, titles in changes.items():
        print(f"\n{version}: {len(titles)} changes of rxe since the kernel seen before it")
        for title in titles:
            print(f"  {title}")


def look(watch: Watch, pools: Pools, arguments: argparse.Namespace) -> list[Seen]:
    """Look at all kernels, or only at the versions that were asked for."""
    rows = []
    for kernel in pools.kernels():
        line = seen_kernels.line_of(kernel.version, LINES)
        chosen = not arguments.versions or kernel.version in arguments.versions
        if chosen and line != NO_LINE:
            rows.append(watch.debian(pools, kernel, line))
    if not arguments.versions:
        row = watch.mainline(arguments.mainline)
        if row:
            rows.append(row)
        else:
            print(f"mainline was not looked at: no answer from {arguments.mainline}")
    return rows


def main() -> None:
    """Parse the command line, look and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("versions", nargs="*", help="only these of Debian's, such as 6.12.118-1")
    parser.add_argument("--build", action="store_true", help="let DKMS build for each that fits")
    parser.add_argument(
        "--boot",
        action="store_true",
        help="the same, and boot the newest of each line, or those that are named",
    )
    parser.add_argument("--write", action="store_true", help="renew kernel/seen.csv")
    parser.add_argument("--mainline", default=URL, help="URL of the git repository")
    parser.add_argument("--cache", type=Path, required=True, help="folder for drivers")
    arguments = parser.parse_args()
    if arguments.write and arguments.versions:
        parser.error("--write is for a look at all kernels")
    seen = seen_kernels.read(SEEN)
    watch = Watch(arguments.cache.absolute(), seen)
    with tempfile.TemporaryDirectory() as name:
        pools = Pools(Path(name))
        rows = look(watch, pools, arguments)
        fresh, broken = seen_kernels.news(seen, rows)
        report(rows, fresh, watch.changes)
        failed = wrong_choices(rows, (KERNEL / "dkms.conf").read_text())
        booted = (rows if arguments.versions else newest(rows)) if arguments.boot else []
        outcome = Outcome()
        if arguments.build or arguments.boot:
            outcome = build_and_boot(watch, pools, rows, booted)
            failed += outcome.failed
    if arguments.write:
        looked = any(row.package == MAINLINE for row in rows)
        older = [row for row in seen if row.package == MAINLINE and not looked]
        seen_kernels.write(SEEN, [*rows, *older])
    for row in broken:
        print(f"refused, and not known to be: {row.package} {row.version}, patch {row.refused}")
    for text in (*failed, *outcome.untried):
        print(text)
    sys.exit(1 if broken or failed else 3 if outcome.untried else 0)


if __name__ == "__main__":
    main()
