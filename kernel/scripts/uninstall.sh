#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# uninstall.sh KVER: return to the stock module, whether install.sh or DKMS installed the other one.
set -eu
. "$(dirname "$0")/fail.sh"
. "$(dirname "$0")/host.sh"
kver=$1
name=rocelab-rxe

if [ -z "${DESTDIR:-}" ] && command -v dkms >/dev/null; then
	for source in "/usr/src/$name"-*; do
		[ -d "$source" ] || continue
		version=${source##*/"$name"-}
		dkms remove "$name/$version" --all ||
			fail "DKMS cannot remove $name/$version" "not root, or see above" "run it as root"
		rm -rf "$source"
	done
fi
rm -f "${DESTDIR:-}/lib/modules/$kver/updates/rdma_rxe.ko" ||
	fail "cannot remove the module" "not root, or a read-only system" "run it as root"
depmod ${DESTDIR:+-b "$DESTDIR"} "$kver"
echo "removed; modprobe loads the stock rdma_rxe of $kver again"
if [ -z "${DESTDIR:-}" ] && [ "$kver" = "$(uname -r)" ]; then
	say_loaded
fi
