#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# apply.sh PRISTINE TREE VERSION "SHARED FILES" [PATCH...]: create TREE from PRISTINE, the shared
# files and the patches. A patch must apply without fuzz.
set -eu
. "$(dirname "$0")/fail.sh"
pristine=$1 tree=$2 version=$3 shared=$4
shift 4

command -v patch >/dev/null ||
	fail "the program patch is missing" "it is not installed" "apt-get install patch"

rm -rf "$tree"
cp -R "$pristine" "$tree"

# true if the source already has the series: its patches can be reverted, the last one first
already_applied() {
	trial=$tree.trial
	rm -rf "$trial"
	cp -R "$pristine" "$trial"
	reversed=""
	for applied; do reversed="$applied $reversed"; done
	for applied in $reversed; do
		patch -s -d "$trial" -p1 -F0 -R -f <"$applied" >/dev/null 2>&1 || { rm -rf "$trial"; return 1; }
	done
	rm -rf "$trial"
}

for p; do
	if out=$(LC_ALL=C patch -d "$tree" -p1 -F0 -N --dry-run <"$p" 2>&1); then
		patch -s -d "$tree" -p1 -F0 -N --no-backup-if-mismatch <"$p"
		continue
	fi
	if [ "$p" = "$1" ] && already_applied "$@"; then
		echo "the source already has the series: $version"
		break
	fi
	printf '%s\n' "$out" | grep -E 'FAILED|file|patch' >&2
	fail "$(basename "$p") does not apply to rxe $version (file and hunk above)" \
		"this kernel's driver has changed since the patch was made" \
		"take another kernel of the line, or adapt $p"
done

for f in $shared; do
	cp "$f" "$tree/drivers/infiniband/sw/rxe/"
done
