#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# check-lines.sh KERNEL OUT: put the series of each line into OUT/LINE. The series is that of every
# line, except for what a line declares; check that it does so with a reason and to some effect.
set -eu
cd "$1"
out=$2
series=$(echo patches/fixes/*.patch patches/events/*.patch patches/v1/*.patch patches/test/*.patch)
status=0

complain() {
	echo "$1" >&2
	status=1
}

for line in patches/lines/*; do
	derived=$out/$(basename "$line")
	# shellcheck disable=SC2086
	sh scripts/line.sh "$line" "$derived" $series || status=1
	for declared in "$line"/*; do
		name=$(basename "${declared%.*}")
		case $declared in
		*/README) continue ;;
		*.fixup | *.omitted) ;;
		*)
			complain "$declared is neither a fixup nor an omission: the series belongs into the groups"
			continue
			;;
		esac
		case $(head -n 1 "$declared") in
		"" | ---*) complain "$declared gives no reason: begin it with one" ;;
		esac
		patch=$(echo patches/*/????-"$name.patch")
		if [ ! -e "$patch" ]; then
			complain "$declared belongs to no patch of the series"
		elif cmp -s "$patch" "$derived/${patch##*/}"; then
			complain "$declared changes nothing: remove it"
		fi
	done
done
exit $status
