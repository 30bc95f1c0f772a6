# SPDX-License-Identifier: GPL-2.0-or-later
"""kernel/scripts: fetching, applying, refusals and error messages. No kernel is built here."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from script_module import load

pytestmark = pytest.mark.slow

KERNEL = Path(__file__).parents[3] / "kernel"
SCRIPTS = KERNEL / "scripts"
DKMS_CONF = (KERNEL / "dkms.conf").read_text()
RXE = "drivers/infiniband/sw/rxe"
# a fake driver, so that the test needs no kernel source: a folder with this file is an rxe folder
SOURCE = "".join(f"int line{number};\n" for number in range(1, 41))
PATCH = f"""\
--- a/{RXE}/rxe_net.c
+++ b/{RXE}/rxe_net.c
@@ -18,7 +18,7 @@
 int line18;
 int line19;
 int line20;
-int line21;
+int patched21;
 int line22;
 int line23;
 int line24;
"""


def script(name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one of the scripts."""
    return subprocess.run(
        ["sh", str(SCRIPTS / f"{name}.sh"), *words],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
    )


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    """Create a source tree with a driver."""
    folder = tmp_path / "pristine" / RXE
    folder.mkdir(parents=True)
    (folder / "rxe_net.c").write_text(SOURCE)
    return tmp_path / "pristine"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    """Create a patch that applies to it."""
    path = tmp_path / "0001-patch.patch"
    path.write_text(PATCH)
    return path


def net(tree: Path) -> Path:
    """Return the file that is patched."""
    return tree / RXE / "rxe_net.c"


def test_apply(pristine: Path, patch: Path, tmp_path: Path) -> None:
    """The tree has the source, the patch and the shared files; the source stays pristine."""
    shared = tmp_path / "shared.h"
    shared.write_text("/* shared */\n")
    done = script(
        "apply", str(pristine), str(tmp_path / "tree"), "6.12.1-1", str(shared), str(patch)
    )
    assert done.returncode == 0, done.stderr
    assert "int patched21;" in net(tmp_path / "tree").read_text()
    assert (tmp_path / "tree" / RXE / "shared.h").exists()
    assert net(pristine).read_text() == SOURCE


def test_apply_moved_lines(pristine: Path, patch: Path, tmp_path: Path) -> None:
    """Moved lines are found, which needs no fuzz."""
    net(pristine).write_text("int new;\n" * 5 + SOURCE)
    done = script("apply", str(pristine), str(tmp_path / "tree"), "6.12.1-1", "", str(patch))
    assert done.returncode == 0, done.stderr
    assert "int patched21;" in net(tmp_path / "tree").read_text()


@pytest.mark.parametrize("line", ["line19", "line21", "line24"])
def test_apply_refuses_fuzz(pristine: Path, patch: Path, tmp_path: Path, line: str) -> None:
    """A changed line, even in the context, is an error that names file, hunk, patch and version."""
    net(pristine).write_text(SOURCE.replace(f"int {line};", f"long {line};"))
    done = script("apply", str(pristine), str(tmp_path / "tree"), "6.12.999-1", "", str(patch))
    assert done.returncode != 0
    assert f"{RXE}/rxe_net.c" in done.stderr
    assert re.search(r"Hunk #1 FAILED at 18", done.stderr)
    assert "0001-patch.patch does not apply to rxe 6.12.999-1" in done.stderr
    assert "what to do" in done.stderr


def test_apply_names_the_patch(pristine: Path, patch: Path, tmp_path: Path) -> None:
    """The error names the patch of the series that failed, also if it is the first."""
    second = tmp_path / "0002-patch.patch"
    second.write_text(PATCH.replace("21", "23"))
    net(pristine).write_text(SOURCE.replace("int line21;", "long line21;"))
    series = str(patch), str(second)
    done = script("apply", str(pristine), str(tmp_path / "tree"), "6.12.999-1", "", *series)
    assert done.returncode != 0
    assert "0001-patch.patch does not apply to rxe 6.12.999-1" in done.stderr


def test_apply_knows_an_applied_series(pristine: Path, patch: Path, tmp_path: Path) -> None:
    """A source that already has the series is used unchanged, and the output says so."""
    net(pristine).write_text(SOURCE.replace("int line21;", "int patched21;"))
    done = script("apply", str(pristine), str(tmp_path / "tree"), "6.12.1-1", "", str(patch))
    assert done.returncode == 0, done.stderr
    assert "the source already has the series" in done.stdout
    assert net(tmp_path / "tree").read_text() == net(pristine).read_text()


@pytest.mark.parametrize("variable", ["RXE_SRC", "KSRC"])
@pytest.mark.parametrize("extra", ["", "-rc7"])
def test_fetch_from_a_tree(pristine: Path, tmp_path: Path, variable: str, extra: str) -> None:
    """A kernel tree provides driver and version."""
    (pristine / "Makefile").write_text(
        f"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 34\nEXTRAVERSION = {extra}\n"
    )
    out = tmp_path / "out"
    done = script("fetch", "6.12", "6.12.34-x", str(out), **{variable: str(pristine)})
    assert done.returncode == 0, done.stderr
    assert net(out).read_text() == SOURCE
    assert (out / "version").read_text() == f"6.12.34{extra}\n"


def test_fetch_from_the_folder(pristine: Path, tmp_path: Path) -> None:
    """KSRC may also be the rxe folder."""
    out = tmp_path / "out"
    done = script("fetch", "6.12", "6.12.34-x", str(out), RXE_SRC=str(pristine / RXE))
    assert done.returncode == 0, done.stderr
    assert net(out).read_text() == SOURCE


def test_fetch_from_debian_tarball(pristine: Path, tmp_path: Path) -> None:
    """The driver is extracted from the tar.xz that the package linux-source installs."""
    (pristine / RXE / "Makefile").write_text("obj-m += rdma_rxe.o\n")
    (pristine / "drivers/other.c").write_text("int other;\n")
    pristine.rename(tmp_path / "linux-source-6.12")
    sources = tmp_path / "src"
    sources.mkdir()
    tarball = sources / "linux-source-6.12.tar.xz"
    subprocess.run(["tar", "-cJf", tarball, "-C", tmp_path, "linux-source-6.12"], check=True)
    out = tmp_path / "out"
    done = script("fetch", "6.12", "6.12.34-x", str(out), SOURCES=str(sources))
    assert done.returncode == 0, done.stderr
    taken = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert taken == [f"{RXE}/Makefile", f"{RXE}/rxe_net.c", "version"]
    # a truncated archive is an error and leaves no partial driver
    tarball.write_bytes(tarball.read_bytes()[:-40])
    shutil.rmtree(out)
    done = script("fetch", "6.12", "6.12.34-x", str(out), SOURCES=str(sources))
    assert done.returncode != 0
    assert f"cannot unpack {tarball}" in done.stderr
    assert not out.exists()


def test_fetch_from_elsewhere(tmp_path: Path) -> None:
    """A folder without the driver is an error, and nothing is created."""
    done = script("fetch", "6.12", "6.12.34-x", str(tmp_path / "out"), RXE_SRC=str(tmp_path))
    assert done.returncode != 0
    assert f"no rxe driver in {tmp_path}" in done.stderr
    assert "what to do" in done.stderr
    assert not (tmp_path / "out").exists()


def patch_id(base: Path) -> str:
    """Return the patch id of a copy of the kernel folder."""
    files = [
        *sorted((base / "patches").glob("*/*.patch")),
        *sorted((base / "src").glob("*.[ch]")),
    ]
    done = script("patch-id", str(base), *map(str, files))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_patch_id(tmp_path: Path) -> None:
    """The patch id has 12 hexadecimal digits, is equal in any folder, and any edit changes it."""
    first, second = tmp_path / "a", tmp_path / "b"
    for copy in (first, second):
        shutil.copytree(KERNEL, copy)
    known = patch_id(first)
    assert re.fullmatch(r"[0-9a-f]{12}", known)
    assert patch_id(second) == known
    with (second / "src/rxe_stage.c").open("a") as file:
        file.write("\n")
    assert patch_id(second) != known
    (first / "src/rxe_stage.c").rename(first / "src/rxe_staged.c")
    assert patch_id(first) != known


def test_unknown_line_and_variant() -> None:
    """Impossible builds fail at once."""
    make = ["make", "-C", str(KERNEL), "KVER=5.10.0-amd64"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No patch series for kernel line 5.10" in done.stderr
    assert "set KSRC" in done.stderr
    done = subprocess.run([*make, "VARIANT=fast"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "VARIANT=fast is not one of: stock fixes events instrumented delay" in done.stderr


def host(sys: Path, call: str) -> subprocess.CompletedProcess[str]:
    """Call a function of host.sh, with a folder instead of /sys."""
    return subprocess.run(
        ["sh", "-c", f". {SCRIPTS}/host.sh; {call}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "SYS": str(sys)},
    )


def test_enforced_signatures(tmp_path: Path) -> None:
    """Secure Boot, the kernel's parameter and lockdown are each detected; without them none is."""

    def enforced() -> bool:
        return host(tmp_path, "signatures_enforced").returncode == 0

    assert not enforced()
    efi = tmp_path / "firmware/efi/efivars"
    efi.mkdir(parents=True)
    variable = efi / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    variable.write_bytes(b"\x06\0\0\0\0")
    assert not enforced()
    variable.write_bytes(b"\x06\0\0\0\1")
    assert enforced()
    variable.unlink()
    parameter = tmp_path / "module/module/parameters/sig_enforce"
    parameter.parent.mkdir(parents=True)
    parameter.write_text("N\n")
    assert not enforced()
    parameter.write_text("Y\n")
    assert enforced()
    parameter.unlink()
    lockdown = tmp_path / "kernel/security/lockdown"
    lockdown.parent.mkdir(parents=True)
    lockdown.write_text("[none] integrity confidentiality\n")
    assert not enforced()
    lockdown.write_text("none [integrity] confidentiality\n")
    assert enforced()


def test_a_signature_is_seen(tmp_path: Path) -> None:
    """A signed module is recognised by the kernel's marker at its end."""
    module = tmp_path / "rdma_rxe.ko"
    module.write_bytes(b"\x7fELF" + bytes(100))
    assert host(tmp_path, f"is_signed {module}").returncode != 0
    module.write_bytes(b"\x7fELF" + bytes(100) + b"~Module signature appended~\n")
    assert host(tmp_path, f"is_signed {module}").returncode == 0


def test_a_loaded_module_is_reported(tmp_path: Path) -> None:
    """The report names the loaded module, its devices, and the commands to replace it."""
    assert host(tmp_path, "say_loaded").stdout == ""
    (tmp_path / "module/rdma_rxe").mkdir(parents=True)
    idle = host(tmp_path, "say_loaded").stdout
    assert "loaded rdma_rxe (the stock one)" in idle
    assert "modprobe -r rdma_rxe && modprobe rdma_rxe" in idle
    assert "rdma link" not in idle
    for device, netdev in (("rxe0", "eth0"), ("rxe1", "eth1")):
        parent = tmp_path / "class/infiniband" / device / "parent"
        parent.parent.mkdir(parents=True)
        parent.write_text(f"{netdev}\n")
    # a hardware device has no such parent
    (tmp_path / "class/infiniband/mlx5_0").mkdir()
    (tmp_path / "module/rdma_rxe/version").write_text("rocelab-0123456789ab\n")
    busy = host(tmp_path, "say_loaded").stdout
    assert "loaded rdma_rxe (rocelab-0123456789ab)" in busy
    assert "in use: rxe0 on eth0, rxe1 on eth1" in busy
    order = ["rdma link delete rxe0", "rdma link delete rxe1", "modprobe -r rdma_rxe"]
    order += ["rdma link add rxe0 type rxe netdev eth0", "rdma link add rxe1 type rxe netdev eth1"]
    places = [busy.index(words) for words in order]
    assert places == sorted(places)


BOOT_HEADER = 0x1F1


def boot_image(payload: bytes) -> bytes:
    """Create the parts of an x86 bzImage that base-btf.sh reads: one set-up sector."""
    head = bytearray(1024)
    head[BOOT_HEADER] = 1
    head[0x202:0x206] = b"HdrS"
    head[0x248:0x24C] = (16).to_bytes(4, "little")
    head[0x24C:0x250] = (len(payload) + 4).to_bytes(4, "little")
    # the data's size follows the data
    return bytes(head) + bytes(16) + payload + b"\x99\0\0\0" + b"what follows"


@pytest.mark.parametrize("name", ["xz", "gzip", "zstd"])
def test_base_btf_of_a_boot_image(tmp_path: Path, name: str) -> None:
    """The kernel in a boot image is unpacked and its BTF extracted."""
    types = tmp_path / "types"
    types.write_bytes(b"\x9f\xeb\x01\0" + b"types of a kernel")
    kernel = tmp_path / "vmlinux"
    shutil.copy("/bin/true", kernel)
    subprocess.run(["objcopy", "--add-section", f".BTF={types}", kernel], check=True)
    packed = subprocess.run([name, "-c", kernel], capture_output=True, check=True).stdout
    image = tmp_path / "vmlinuz"
    image.write_bytes(boot_image(packed))
    out = tmp_path / "base.btf"
    done = script("base-btf", "6.1.0-0-test", str(out), VMLINUZ=str(image))
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == types.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "base.btf", "types", "vmlinux", "vmlinuz",
    ]  # fmt: skip


def test_base_btf_refuses(tmp_path: Path) -> None:
    """No image, no boot header, an unknown compression: each is reported with what to do."""
    image = tmp_path / "vmlinuz"

    def refusal() -> str:
        done = script("base-btf", "6.1.0-0-test", str(tmp_path / "out"), VMLINUZ=str(image))
        assert done.returncode == 1
        assert "what to do" in done.stderr
        return done.stderr

    assert f"no {image}" in refusal()
    image.write_bytes(bytes(4096))
    assert "no boot header" in refusal()
    image.write_bytes(boot_image(b"something else"))
    assert "starts with 736f6d65" in refusal()
    image.write_bytes(boot_image(b"\x1f\x8b\x08 damaged"))
    assert "the kernel in it has no BTF" in refusal()


def test_fetch_without_debian(tmp_path: Path) -> None:
    """Without dpkg, the error points to KSRC."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "sed", "dirname"):
        program = shutil.which(name)
        assert program
        (tools / name).symlink_to(program)
    done = script(
        "fetch", "6.12", "6.12.34-x", str(tmp_path / "o"), PATH=str(tools), SOURCES=str(tmp_path)
    )
    assert done.returncode == 1
    assert "set KSRC" in done.stderr


def test_fetch_without_headers(tmp_path: Path) -> None:
    """The source must match the headers; without them no version is guessed."""
    (tmp_path / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "dpkg-query").chmod(0o755)
    out = tmp_path / "out"
    path = f"{tmp_path}:/usr/bin:/bin"
    done = script("fetch", "6.12", "6.12.34-x", str(out), PATH=path, SOURCES=str(tmp_path))
    assert done.returncode == 1
    assert "the headers of kernel 6.12.34-x are not installed" in done.stderr
    assert "apt-get install linux-headers-6.12.34-x" in done.stderr
    assert not out.exists()


def test_build_without_headers(tmp_path: Path) -> None:
    """A self-built kernel has its headers elsewhere: the error also names KDIR."""
    out = tmp_path / "rdma_rxe.ko"
    done = script("build", str(tmp_path / "none"), "6.12.34-x", str(tmp_path), str(out), "")
    assert done.returncode == 1
    assert f"no kernel headers in {tmp_path / 'none'}" in done.stderr
    assert "apt-get install linux-headers-6.12.34-x, or set KDIR" in done.stderr
    assert not out.exists()


def test_dkms_conf() -> None:
    """The variables that dkms.conf sets are those of the Makefile."""
    assert 'PACKAGE_VERSION="@VERSION@"' in DKMS_CONF
    for variable in re.findall(r" (\w+)=\$", DKMS_CONF):
        assert re.search(rf"^{variable} \?=", (KERNEL / "Makefile").read_text(), re.MULTILINE)


DEBIAN = [
    [release, "none" if row.refused else row.line]
    for row in load("tools/kernel-source/seen_kernels.py").read(KERNEL / "seen.csv")
    for release in row.releases.split()
]


OTHERS = [
    *([f"6.12.118+deb13-{flavour}-amd64", "6.12"] for flavour in ("cloud", "rt")),
    *([release, "none"] for release in ("6.10.3-amd64", "5.10.0-amd64", "7.30.1-amd64", "6.1.19")),
    *([release, "6.1"] for release in ("6.1.190", "6.1.200-custom", "6.1.0-101-amd64")),
    *([release, "6.12"] for release in ("6.12.113", "6.12.201-custom")),
    ["7.3.0-custom", "7.x"],
]


@pytest.mark.parametrize(("release", "line"), DEBIAN + OTHERS)
def test_dkms_builds_for_the_kernels_of_a_line(release: str, line: str) -> None:
    """If DKMS began a build that fails, apt could leave the kernel's package unconfigured."""
    pattern = re.search(r'^BUILD_EXCLUSIVE_KERNEL="(.*)"$', DKMS_CONF, re.MULTILINE)
    assert pattern
    assert bool(re.match(pattern[1], release)) == (line != "none")


@pytest.mark.parametrize("release", ["6.1.0-56-amd64", "6.12.118+deb13-amd64", "7.3-amd64"])
def test_make_knows_the_line(release: str) -> None:
    """Make chooses the line for which DKMS builds."""
    assert line_of(release).stdout == f"{dict(DEBIAN)[release]}\n"


@pytest.mark.parametrize("release", ["7.2.13+deb14-amd64", "7.30.1-amd64"])
def test_make_refuses_a_kernel_without_a_line(release: str) -> None:
    """A kernel whose driver the series was not made for is named."""
    series = ".".join(release.split(".")[:2])
    said = line_of(release).stderr
    assert f"No patch series for kernel line {series} (kernel {release})" in said


def line_of(release: str) -> subprocess.CompletedProcess[str]:
    """Print the line that make chooses."""
    return subprocess.run(
        ["make", "-s", "-C", KERNEL, f"KVER={release}", "--eval=line:;@echo $(LINE)", "line"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_fixes_come_first_and_can_be_backported() -> None:
    """Each fix says what it fixes, and needs nothing of the events or of RoCE v1."""
    fixes = sorted((KERNEL / "patches/fixes").glob("*.patch"))
    assert fixes
    for path in fixes:
        text = path.read_text()
        assert re.search(r'^Fixes: [0-9a-f]{12} \(".+"\)$', text, re.MULTILINE), path.name
        added = [line for line in text.splitlines() if line.startswith("+")]
        assert not re.search(r"trace_rxe|rxe_(trace|stamp|v1)_|RXE_DROP", "\n".join(added))


def test_names_of_what_only_traces() -> None:
    """Functions and variables of the events begin with rxe_trace_ or rxe_stamp_."""
    for path in sorted((KERNEL / "src").glob("rxe_st*.[ch]")):
        text = path.read_text()
        defined = re.findall(r"^(?!#|\t| )[\w *]*\b((?:__)?rxe_\w+) ?[(\[;={]", text, re.MULTILINE)
        assert defined
        for name in defined:
            assert re.match(r"(__)?rxe_(trace|stamp)(_|$)", name), f"{path.name}: {name}"


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Create a series of two patches and a line that has the second one otherwise."""
    for number, name in ((1, "first"), (2, "second")):
        text = PATCH.replace("int patched21", f"int {name}21")
        (tmp_path / f"000{number}-{name}.patch").write_text(text)
    line = tmp_path / "line"
    line.mkdir()
    (line / "second.fixup").write_text(
        "This line counts otherwise.\n\n--- a/second.patch\n+++ b/second.patch\n"
        "@@ -7,3 +7,3 @@\n--int line21;\n-+int second21;\n+-long line21;\n++long second21;\n"
        "  int line22;\n"
    )
    return tmp_path


def of_line(series: Path) -> subprocess.CompletedProcess[str]:
    """Derive the line's series."""
    patches = map(str, sorted(series.glob("*.patch")))
    return script("line", str(series / "line"), str(series / "out"), *patches)


def test_a_line_is_derived(series: Path) -> None:
    """A patch is taken as it is, with the line's fixup, or left out where the line says so."""

    done = of_line(series)
    assert done.returncode == 0, done.stderr
    first, second = sorted((series / "out").iterdir())
    assert first.read_text() == (series / "0001-first.patch").read_text()
    assert "+long second21;" in second.read_text()
    (series / "line/first.omitted").write_text("This line never had the bug.\n")
    done = of_line(series)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (series / "out").iterdir()] == ["0002-second.patch"]


def test_a_stale_fixup_is_refused(series: Path) -> None:
    """If a patch has changed where a line differs, the line's fixup must be made again."""
    (series / "0002-second.patch").write_text(PATCH.replace("line21", "other21"))
    done = of_line(series)
    assert done.returncode == 1
    assert "second.fixup does not apply to 0002-second.patch" in done.stderr
    assert "Changing the series" in done.stderr


def test_every_line_is_derived(tmp_path: Path) -> None:
    """Each line's fixups belong to the series as it is, and give a reason."""
    patches = [
        str(path)
        for group in ("fixes", "events", "v1", "test")
        for path in sorted((KERNEL / "patches" / group).glob("*.patch"))
    ]
    for line in sorted((KERNEL / "patches/lines").iterdir()):
        done = script("line", str(line), str(tmp_path / line.name), *patches)
        assert done.returncode == 0, done.stderr
        omitted = {path.stem for path in line.glob("*.omitted")}
        derived = {path.name for path in (tmp_path / line.name).iterdir()}
        assert derived == {
            Path(path).name for path in patches if Path(path).stem[5:] not in omitted
        }


def test_series_form() -> None:
    """Each patch can be mailed: numbered, signed off, changing only the driver."""
    patches = [
        path
        for group in ("fixes", "events", "v1", "test")
        for path in sorted((KERNEL / "patches" / group).glob("*.patch"))
    ]
    assert [int(path.name[:4]) for path in patches] == list(range(1, len(patches) + 1))
    for path in patches:
        text = path.read_text()
        assert re.match(r"\d{4}-RDMA-rxe-", path.name)
        assert "\nSigned-off-by: " in text
        assert re.search(r"^Subject: \[PATCH\] RDMA/rxe: [A-Z]", text, re.MULTILINE)
        touched = re.findall(r"^\+\+\+ b/(.*)$", text, re.MULTILINE)
        assert touched
        assert all(name.startswith(f"{RXE}/") for name in touched)


def check_lines(kernel: Path) -> subprocess.CompletedProcess[str]:
    """Check what the lines of a kernel folder declare."""
    return script("check-lines", str(kernel), str(kernel / "out"))


def test_undeclared_divergence_is_refused(tmp_path: Path) -> None:
    """A line's own patch, a fixup without reason, effect or patch, a stale one: all are errors."""
    kernel = tmp_path / "kernel"
    shutil.copytree(KERNEL, kernel)
    done = check_lines(kernel)
    assert done.returncode == 0, done.stderr
    line = kernel / "patches/lines/6.12"
    first = next((kernel / "patches/fixes").glob("0009-*")).read_text().split("\n", 1)[0]
    same = f"Why.\n\n--- a/patch\n+++ b/patch\n@@ -1 +1 @@\n-{first}\n+{first}\n"
    spoilt = {
        "own.patch": ("", "is neither a fixup nor an omission"),
        "RDMA-rxe-Another.fixup": ("Why.\n", "belongs to no patch of the series"),
        "RDMA-rxe-Copy-the-address-vector-once.omitted": ("", "gives no reason"),
        "RDMA-rxe-Copy-the-address-vector-once.fixup": (same, "changes nothing: remove it"),
    }
    for name, (text, complaint) in spoilt.items():
        path = line / name
        before = path.read_text() if path.exists() else None
        path.write_text(text)
        done = check_lines(kernel)
        assert done.returncode == 1
        assert f"{name} " in done.stderr
        assert complaint in done.stderr
        if before is None:
            path.unlink()
        else:
            path.write_text(before)
    fixup = line / "RDMA-rxe-Trace-the-arrival-of-a-packet.fixup"
    fixup.write_text(fixup.read_text().replace("\n-", "\n-other ", 4))
    done = check_lines(kernel)
    assert done.returncode == 1
    assert "does not apply" in done.stderr


def mail_series(kernel: Path) -> list[str]:
    """Write a series of two fixes, an event and v1, with two themes: the second fix comes first."""
    places = (("fixes", 1, 21), ("fixes", 2, 31), ("events", 3, 21), ("v1", 4, 31))
    for group, number, line in places:
        folder = kernel / "patches" / group
        folder.mkdir(parents=True, exist_ok=True)
        before = f"line{line}" if group == "fixes" else f"made{number - 2}"
        change = PATCH if line == 21 else numbered_context(31)
        (folder / f"000{number}-{group}-{number}.patch").write_text(
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: Else <else@localhost>\n"
            "Date: Sat, 21 Nov 2026 03:23:30 +0000\n"
            f"Subject: [PATCH] RDMA/rxe: Do {group} {number}\n\nWhy.\n\n"
            "Signed-off-by: Else <else@localhost>\n---\n"
            + change.replace(f"patched{line}", f"made{number}").replace(
                f"-int line{line};", f"-int {before};"
            )
        )
    covers = kernel / "patches/fixes/covers"
    covers.mkdir()
    (covers / "1-second").write_text("About the second\n\nText.\n--\nfixes-2\n")
    (covers / "2-first").write_text("About the first\n\nText.\n--\nfixes-1\n")
    for group, name in (("events", "3-rfc-events"), ("v1", "4-rfc-v1")):
        cover = kernel / "patches" / group / "covers" / name
        cover.parent.mkdir()
        cover.write_text(f"About {group}\n\nText.\n--\n{group}-{name[0]}\n")
    (kernel / "src").mkdir()
    for name in ("rxe_trace.h", "rxe_v1.c"):
        (kernel / "src" / name).write_text(f"/* {name} */\n")
    shutil.copytree(SCRIPTS, kernel / "scripts")
    groups = ("fixes", "events", "v1")
    return [
        str(path) for group in groups for path in sorted(kernel.glob(f"patches/{group}/*.patch"))
    ]


def numbered_context(line: int) -> str:
    """Return the patch of another line of the driver."""
    return re.sub(
        r"(\D)(\d\d)(?=[;,])", lambda match: f"{match[1]}{int(match[2]) + line - 21}", PATCH
    )


def test_mails(pristine: Path, tmp_path: Path) -> None:
    """Fixes by theme, then RFCs, each with a cover letter; who git says you are signs off."""
    kernel, config = tmp_path / "kernel", tmp_path / "gitconfig"
    series = mail_series(kernel)
    config.write_text("[user]\n\tname = Jane Doe\n\temail = jane@example.org\n")
    words = (str(kernel), str(pristine), str(tmp_path / "mail"), "7.3", *series)
    done = script("mail", *words, GIT_CONFIG_GLOBAL=str(config), HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    mails = {f"{path.parent.name}/{path.name[:4]}": path.read_text()
             for path in (tmp_path / "mail").glob("*/*.patch")}  # fmt: skip
    folders = ("1-second", "2-first", "3-rfc-events", "4-rfc-v1")
    assert set(mails) == {f"{folder}/{n}" for folder in folders for n in ("0000", "0001")}
    assert "Subject: [PATCH 0/1] About the second\n\nText.\n" in mails["1-second/0000"]
    assert "Subject: [RFC PATCH 0/1] About events\n\nText.\n" in mails["3-rfc-events/0000"]
    assert "fixes-2" not in mails["1-second/0000"]
    assert "Subject: [PATCH 1/1] RDMA/rxe: Do fixes 2\n" in mails["1-second/0001"]
    for name in (f"{folder}/0001" for folder in folders):
        assert mails[name].count("Signed-off-by: Jane Doe <jane@example.org>\n") == 1
        assert "From: Jane Doe <jane@example.org>\n" in mails[name]
        assert "Else" not in mails[name]
    assert "+/* rxe_trace.h */" in mails["3-rfc-events/0001"]
    assert "+/* rxe_v1.c */" in mails["4-rfc-v1/0001"]
    # a fix without a theme
    (kernel / "patches/fixes/covers/2-first").unlink()
    done = script("mail", *words, GIT_CONFIG_GLOBAL=str(config), HOME=str(tmp_path))
    assert done.returncode == 1
    config.write_text("")
    done = script("mail", *words, GIT_CONFIG_GLOBAL=str(config), HOME=str(tmp_path))
    assert done.returncode == 1
    assert "nobody signs off" in done.stderr


@pytest.mark.parametrize("group", ["fixes", "events", "v1"])
def test_each_patch_has_a_theme(group: str) -> None:
    """The cover letters name every patch once."""
    named = [
        name
        for cover in (KERNEL / "patches" / group / "covers").iterdir()
        for name in cover.read_text().partition("\n--\n")[2].splitlines()
    ]
    assert sorted(named) == sorted(
        path.stem[5:] for path in (KERNEL / "patches" / group).glob("*.patch")
    )


def test_plain_events_need_no_stages() -> None:
    """The first RFC builds without the record of stages: none of its files includes those."""
    names = (KERNEL / "patches/events/covers/5-rfc-events").read_text().partition("\n--\n")[2]
    plain = [path for path in (KERNEL / "patches/events").glob("*.patch") if path.stem[5:] in names]
    assert len(plain) == len(names.split())
    stages = re.compile(r"rxe_(stage|stamp|record|trace_stages)\b|rxe_trace_(tx|rx|done)\(")
    for path in (
        *plain,
        *(KERNEL / "src" / f"rxe_{n}.h" for n in ("trace", "event", "values", "drop")),
    ):
        assert not stages.search(path.read_text()), path.name


def numbered(before: int, after: int) -> str:
    """Make a patch that renames a variable: line21, made1, made2 …"""
    old = f"made{before}" if before else "line21"
    return PATCH.replace("int line21;", f"int {old};").replace("patched21", f"made{after}")


@dataclass
class EachPatch:
    """A series of three patches, built with one more at a time against headers of our own."""

    folder: Path
    pristine: Path
    patches: list[Path]

    def built(self, rule: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Build; `rule` is what the kernel's make does."""
        headers = self.folder / "headers"
        headers.mkdir(exist_ok=True)
        (headers / "Makefile").write_text(f"modules:\n\t@{rule}\n")
        words = (self.folder / "kernel", headers, self.pristine, self.folder / "tree")
        return script("each", *map(str, words), *map(str, self.patches), **environment)


@pytest.fixture
def each_patch(pristine: Path, tmp_path: Path) -> EachPatch:
    """Create the series."""
    kernel = tmp_path / "kernel"
    patches = []
    for group, number in (("fixes", 1), ("events", 2), ("v1", 3)):
        (kernel / "patches" / group).mkdir(parents=True)
        patches.append(kernel / "patches" / group / f"000{number}-{group}.patch")
        patches[-1].write_text(numbered(number - 1, number))
    (kernel / "src").mkdir()
    for name in ("rxe_trace.h", "rxe_v1.c"):
        (kernel / "src" / name).write_text(f"/* {name} */\n")
    return EachPatch(tmp_path, pristine, patches)


def test_each_patch_is_built_on_its_own(each_patch: EachPatch, tmp_path: Path) -> None:
    """One more patch at a time, with the files that come with it; errors and warnings are fatal."""
    states = tmp_path / "states"
    look = f"sed -n 21p $(M)/rxe_net.c >> {states}; cd $(M); ls >> {states}"
    done = each_patch.built(look)
    assert done.returncode == 0, done.stderr
    assert states.read_text().split() == [
        "int", "line21;", "rxe_net.c",
        "int", "made1;", "rxe_net.c",
        "int", "made2;", "rxe_net.c", "rxe_trace.h",
        "int", "made3;", "rxe_net.c", "rxe_trace.h", "rxe_v1.c",
    ]  # fmt: skip
    assert done.stdout.count("builds: ") == 4
    done = each_patch.built(
        "if grep -q made2 $(M)/rxe_net.c; then echo error: no made2 >&2; exit 1; fi"
    )
    assert done.returncode == 1
    assert "error: no made2" in done.stderr
    assert "does not build with 0002-events.patch" in done.stderr
    done = each_patch.built(
        "if grep -q made3 $(M)/rxe_net.c; then echo rxe_net.c:21: warning: made3; fi"
    )
    assert done.returncode == 1
    assert "the compiler warns of 0003-v1.patch" in done.stderr
    each_patch.patches.pop(0)
    done = each_patch.built("true")
    assert done.returncode == 1
    assert "0002-events.patch does not apply" in done.stderr


def test_what_was_built_is_not_built_again(each_patch: EachPatch, tmp_path: Path) -> None:
    """A changed series is built from its first change on; what failed is built again."""
    log = tmp_path / "log"
    rule = f"sed -n 21p $(M)/rxe_net.c >> {log}; ! grep -q wrong $(M)/rxe_v1.c 2>/dev/null"
    new_file = tmp_path / "kernel/src/rxe_v1.c"

    def states() -> str:
        log.write_text("")
        each_patch.built(rule)
        return log.read_text()

    assert states() == "int line21;\nint made1;\nint made2;\nint made3;\n"
    assert states() == ""
    new_file.write_text("wrong\n")
    assert states() == "int made3;\n"
    assert states() == "int made3;\n"
    new_file.write_text("right\n")
    assert states() == "int made3;\n"
    text = each_patch.patches[1].read_text()
    each_patch.patches[1].write_text("Why.\n\n" + text)
    assert states() == "int made2;\nint made3;\n"
    (each_patch.pristine / RXE / "Makefile").write_text("# another\n")
    assert states().count("\n") == 4


def dkms_source(folder: Path, left_out: str) -> subprocess.CompletedProcess[str]:
    """Make what DKMS builds from, without some patches."""
    words = [f"DESTDIR={folder}", "VERSION=1", f"LEAVE_OUT={left_out}"]
    return subprocess.run(
        ["make", "-s", "-C", str(KERNEL), "dkms-source", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_patches_are_left_out(tmp_path: Path) -> None:
    """LEAVE_OUT names them by number; all others stay."""
    series = {path.name for path in KERNEL.glob("patches/*/*.patch")}
    out = {name for name in series if name.startswith(("0031-", "0032-"))}
    assert len(out) == 2
    done = dkms_source(tmp_path, "0031 0032")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.rglob("*.patch")} == series - out


def test_a_patch_to_leave_out_must_be_there(tmp_path: Path) -> None:
    """A wrong number does not build all of them."""
    done = dkms_source(tmp_path, "31")
    assert done.returncode != 0
    assert "LEAVE_OUT=31: no patch has this number" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_build_can_begin_with_a_later_patch(each_patch: EachPatch, tmp_path: Path) -> None:
    """FROM names it; what comes before is applied, and not taken for built."""
    log = tmp_path / "log"
    rule = f"sed -n 21p $(M)/rxe_net.c >> {log}"
    assert each_patch.built(rule, FROM="0002").returncode == 0
    assert log.read_text() == "int made2;\nint made3;\n"
    log.write_text("")
    assert each_patch.built(rule).returncode == 0
    assert log.read_text() == "int line21;\nint made1;\n"
