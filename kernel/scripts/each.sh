#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# each.sh KERNEL KDIR PRISTINE TREE PATCH...: build the driver in TREE against the headers in KDIR with
# one more PATCH at a time, as a bisection would. A commit that does not build, or warns, fails.
set -eu
. "$(dirname "$0")/fail.sh"
. "$(dirname "$0")/new-files.sh"
kernel=$1 kdir=$2 pristine=$3 tree=$4
shift 4
rxe=$tree/drivers/infiniband/sw/rxe
new=$(new_files "$kernel")

[ -e "$kdir/Makefile" ] ||
	fail "no kernel headers in $kdir" "they are not installed" "install linux-headers, or set KDIR"

# build WHAT: what changed since the last time
build() {
	env -u MAKEFLAGS -u MFLAGS -u O make -j"${JOBS:-$(nproc)}" -C "$kdir" M="$rxe" CONFIG_RDMA_RXE=m modules \
		>"$tree/build.log" 2>&1 || {
		grep -E 'error|Error' "$tree/build.log" >&2 || tail -n 20 "$tree/build.log" >&2
		fail "the driver does not build with $1" "it needs a later patch" "see $tree/build.log"
	}
	if grep -A5 'warning:' "$tree/build.log" >&2; then
		fail "the compiler warns of $1" "see the messages above" "the whole log is $tree/build.log"
	fi
	echo "builds: $1"
}

rm -rf "$tree"
cp -R "$pristine" "$tree"
build "the kernel's own source"
for p; do
	said=$(LC_ALL=C patch -s -d "$tree" -p1 -F0 -N -f --no-backup-if-mismatch <"$p") ||
		fail "$(basename "$p") does not apply: $said" "the driver has changed since it was made" \
			"take another kernel of the line, or adapt $p"
	for file in $new; do
		[ "${file%%:*}" != "$(basename "$p")" ] || cp "${file#*:}" "$rxe/"
	done
	build "$(basename "$p")"
done
