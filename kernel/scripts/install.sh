#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# install.sh MODULE KVER: put the module where depmod prefers it to the stock one.
set -eu
. "$(dirname "$0")/fail.sh"
module=$1 kver=$2
root=${DESTDIR:-}/lib/modules/$kver

[ -d "$root" ] || fail "there is no $root" "kernel $kver is not installed" "set KVER"
mkdir -p "$root/updates"
cp "$module" "$root/updates/rdma_rxe.ko.new" ||
	fail "cannot write to $root/updates" "not root, or a read-only system" "run it as root"
mv "$root/updates/rdma_rxe.ko.new" "$root/updates/rdma_rxe.ko"
depmod ${DESTDIR:+-b "$DESTDIR"} "$kver"
echo "installed $root/updates/rdma_rxe.ko"

if [ -z "${DESTDIR:-}" ] && [ "$kver" = "$(uname -r)" ] && [ -d /sys/module/rdma_rxe ]; then
	echo "a rdma_rxe is loaded: 'modprobe -r rdma_rxe && modprobe rdma_rxe' changes over"
fi
