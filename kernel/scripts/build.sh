#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# build.sh KDIR KVER RXE OUT PATCH_ID: build the driver in RXE against the headers in KDIR;
# put it, with BTF and without debug sections, into OUT.
set -eu
. "$(dirname "$0")/fail.sh"
kdir=$1 kver=$2 rxe=$3 out=$4 patch_id=$5

[ -e "$kdir/Makefile" ] ||
	fail "no kernel headers in $kdir" "linux-headers-$kver is not installed" \
		"apt-get install linux-headers-$kver, or set KDIR"
command -v pahole >/dev/null ||
	fail "the program pahole is missing, without which the module has no BTF" \
		"dwarves is not installed" "apt-get install dwarves"

log=$(dirname "$out")/build.log
# pahole compares file times: a stale file would keep an old BTF
rm -f "$rxe/rdma_rxe.ko"
echo "building rdma_rxe for $kver"
# without the settings of our make: O= has another meaning in the kernel's
env -u MAKEFLAGS -u MFLAGS -u O make -j"${JOBS:-$(nproc)}" -C "$kdir" M="$rxe" CONFIG_RDMA_RXE=m \
	${patch_id:+KCFLAGS=-DRXE_BUILD_ID=\\\"rocelab-$patch_id\\\"} modules >"$log" 2>&1 || {
	grep -E 'error|Error|warning' "$log" >&2 || tail -n 20 "$log" >&2
	fail "the module does not build" "see the messages above" "the whole log is $log"
}
if grep -q 'warning:' "$log"; then
	grep -A5 'warning:' "$log" >&2
fi

# a kernel without BTF, such as some debug kernels, cannot use a module's BTF
if [ -e "$kdir/.config" ] && ! grep -q '^CONFIG_DEBUG_INFO_BTF=y' "$kdir/.config"; then
	echo "kernel $kver has no BTF: the driver's events work there, rxestat and rxedump do not" >&2
	objcopy --strip-debug "$rxe/rdma_rxe.ko" "$out"
	exit
fi
# if the headers have no vmlinux, the kernel's makefiles generate no BTF
if [ ! -e "$kdir/vmlinux" ]; then
	sh "$(dirname "$0")/base-btf.sh" "$kver" "$rxe/base.btf"
	LLVM_OBJCOPY=objcopy pahole -J --btf_base "$rxe/base.btf" "$rxe/rdma_rxe.ko" >>"$log" 2>&1 ||
		fail "pahole cannot make the BTF of the module" "see the end of $log" \
			"apt-get install --only-upgrade dwarves"
fi

objcopy --strip-debug "$rxe/rdma_rxe.ko" "$out.new"
objdump -h "$out.new" | grep -q '\.BTF' ||
	fail "the module has no BTF" "the headers of $kver carry no vmlinux, or pahole failed" \
		"see $log"
mv "$out.new" "$out"
