#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# patch-id.sh BASE FILE...: 12 hexadecimal digits that name these files: content and name
# below BASE, in the order given.
set -eu
base=$1
shift
cd "$base"
for file; do
	name=${file#"$base"/}
	printf '%s %s\n' "$(sha256sum <"$name" | cut -d' ' -f1)" "$name"
done | sha256sum | cut -c1-12
