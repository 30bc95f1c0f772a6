#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# dkms-install.sh KERNEL_FOLDER KVER VERSION: add this folder to DKMS, and build and install the
# driver for kernel KVER. Replaces an earlier installation.
set -eu
. "$(dirname "$0")/fail.sh"
. "$(dirname "$0")/host.sh"
folder=$1 kver=$2 version=$3
name=rocelab-rxe
source=/usr/src/$name-$version

command -v dkms >/dev/null ||
	fail "the program dkms is missing" "it is not installed" "apt-get install dkms"
[ "$(id -u)" -eq 0 ] || fail "DKMS writes to /usr/src and /lib/modules" "not root" "run it as root"
[ -e "/lib/modules/$kver/build/Makefile" ] ||
	fail "no kernel headers in /lib/modules/$kver/build" "linux-headers-$kver is not installed" \
		"apt-get install linux-headers-$kver"

for old in "/usr/src/$name"-*; do
	[ -d "$old" ] || continue
	dkms remove "$name/${old##*/"$name"-}" --all >/dev/null 2>&1 || :
	rm -rf "$old"
done
sh "$(dirname "$0")/dkms-source.sh" "$folder" "$source" "$version"
# a copy of ours in updates/ would compete with DKMS's
rm -f "/lib/modules/$kver/updates/rdma_rxe.ko"

dkms add "$name/$version"
if ! dkms build "$name/$version" -k "$kver"; then
	log=/var/lib/dkms/$name/$version/build/make.log
	[ ! -e "$log" ] || tail -n 20 "$log" >&2
	fail "DKMS cannot build the driver for $kver" "see the messages above" "the whole log is $log"
fi
dkms install "$name/$version" -k "$kver" --force ||
	fail "DKMS cannot install the driver for $kver" "see the messages above" \
		"uninstall with make -C kernel uninstall, and try again"
if [ "$kver" = "$(uname -r)" ]; then
	if signatures_enforced; then
		echo "note: this kernel loads only signed modules; DKMS has signed this one with its own key"
		echo "  what to do, once: mokutil --import /var/lib/dkms/mok.pub, then reboot and enroll it"
	fi
	say_loaded
fi
