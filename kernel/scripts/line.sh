#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# line.sh DIFFERENCES OUT [PATCH...]: put the series of a kernel line into OUT.
# DIFFERENCES holds what the line has otherwise, by the patch's name without its number:
# NAME.fixup is a diff from the patch to the line's own, NAME.omitted says why the line has none.
set -eu
. "$(dirname "$0")/fail.sh"
differences=$1 out=$2
shift 2

rm -rf "$out"
mkdir -p "$out"
for p; do
	file=$(basename "$p")
	name=${file%.patch}
	name=$differences/${name#????-}
	if [ -e "$name.omitted" ]; then
		continue
	elif [ -e "$name.fixup" ]; then
		said=$(LC_ALL=C patch -s -F0 -f -r - -o "$out/$file" "$p" "$name.fixup" 2>&1) ||
			fail "$name.fixup does not apply to $file: $said" \
				"the patch was changed and its fixup was not" \
				"write both again (kernel/README.md, Changing the series)"
	else
		cp "$p" "$out/"
	fi
done
