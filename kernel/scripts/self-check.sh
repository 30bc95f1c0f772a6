#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# self-check.sh PATCH_ID: verify that the loaded rdma_rxe has this patch id. An empty PATCH_ID means
# the stock driver.
set -eu
. "$(dirname "$0")/fail.sh"
want=${1:+rocelab-$1}

[ -d /sys/module/rdma_rxe ] ||
	fail "rdma_rxe is not loaded" "nothing has asked for it yet" "modprobe rdma_rxe"
got=$(cat /sys/module/rdma_rxe/version 2>/dev/null || :)
[ "$got" = "$want" ] ||
	fail "the loaded rdma_rxe is '${got:-stock}', not '${want:-stock}'" \
		"another module was loaded before the installation" \
		"modprobe -r rdma_rxe && modprobe rdma_rxe"
echo "loaded: ${got:-stock}; modprobe loads $(modinfo -n rdma_rxe)"

[ -n "$want" ] || exit 0
for tracing in /sys/kernel/tracing /sys/kernel/debug/tracing; do
	[ -d "$tracing/events/rxe" ] || continue
	echo "events: $(find "$tracing/events/rxe" -mindepth 1 -maxdepth 1 -type d | wc -l) in $tracing/events/rxe"
	exit
done
fail "there are no events of rxe" "tracefs is not mounted" "mount -t tracefs tracefs /sys/kernel/tracing"
