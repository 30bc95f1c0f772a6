#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# dkms-source.sh KERNEL_FOLDER DEST VERSION [PATCH...]: put into DEST what DKMS builds the driver from,
# without these patches.
set -eu
folder=$1 dest=$2 version=$3
shift 3
mkdir -p "$dest"
for part in Makefile patches scripts src; do
	cp -R "$folder/$part" "$dest/"
done
sed "s/@VERSION@/$version/" "$folder/dkms.conf" >"$dest/dkms.conf"
for patch; do
	rm "$dest"/patches/*/"$patch"
done
