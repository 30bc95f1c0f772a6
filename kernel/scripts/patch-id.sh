#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# patch-id.sh BASE FILE...: print 12 hexadecimal digits that identify the files: contents and names
# below BASE, in the given order.
set -eu
base=$1
shift
cd "$base"
for file; do
	name=${file#"$base"/}
	printf '%s %s\n' "$(sha256sum <"$name" | cut -d' ' -f1)" "$name"
done | sha256sum | cut -c1-12
