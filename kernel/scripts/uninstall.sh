#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# uninstall.sh KVER: back to the stock module.
set -eu
kver=$1
rm -f "${DESTDIR:-}/lib/modules/$kver/updates/rdma_rxe.ko"
depmod ${DESTDIR:+-b "$DESTDIR"} "$kver"
echo "removed; the stock rdma_rxe of $kver is back when it is loaded next"
