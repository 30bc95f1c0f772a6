#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# each.sh KERNEL KDIR PRISTINE TREE PATCH...: build the driver in TREE against the headers in KDIR with
# one more PATCH at a time, as a bisection would. A commit that does not build, or warns, fails.
# TREE.passed remembers what was built, so that a changed series is built from its first change on. In
# the environment, FROM has the number of the first patch to build; those before are only applied.
set -eu
. "$(dirname "$0")/fail.sh"
. "$(dirname "$0")/new-files.sh"
kernel=$1 kdir=$2 pristine=$3 tree=$4
shift 4
rxe=$tree/drivers/infiniband/sw/rxe
new=$(new_files "$kernel")

[ -e "$kdir/Makefile" ] ||
	fail "no kernel headers in $kdir" "they are not installed" "install linux-headers, or set KDIR"

# step WHAT FILE...: build the driver with WHAT, which brought FILEs, unless that was done before
state=$kdir
step() {
	what=$1
	shift
	state=$({ echo "$state"; cat "$@"; } | sha256sum)
	if [ "${what%%[-:]*}" -lt "${FROM:-0}" ]; then
		echo "not built: $what"
	elif grep -qsx "$state" "$tree.passed"; then
		echo "built before: $what"
	else
		build "$what"
		echo "$state" >>"$tree.passed"
	fi
}

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
step "0000: the kernel's own source" "$kdir/Makefile" "$pristine"/drivers/infiniband/sw/rxe/*
for p; do
	said=$(LC_ALL=C patch -s -d "$tree" -p1 -F0 -N -f --no-backup-if-mismatch <"$p") ||
		fail "$(basename "$p") does not apply: $said" "the driver has changed since it was made" \
			"take another kernel of the line, or adapt $p"
	set -- "$p"
	for file in $new; do
		[ "${file%%:*}" = "$(basename "$p")" ] || continue
		cp "${file#*:}" "$rxe/"
		set -- "$@" "${file#*:}"
	done
	step "$(basename "$p")" "$@"
done
