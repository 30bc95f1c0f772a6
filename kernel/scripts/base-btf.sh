#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# base-btf.sh KVER OUT: put the BTF of kernel KVER into OUT. The headers of 6.1 do not include it, so
# take it from the running kernel if that is KVER, or from KVER's boot image (VMLINUZ, or in /boot).
set -eu
. "$(dirname "$0")/fail.sh"
kver=$1 out=$2

if [ "$kver" = "$(uname -r)" ] && [ -r /sys/kernel/btf/vmlinux ]; then
	cp /sys/kernel/btf/vmlinux "$out"
	exit
fi

image=${VMLINUZ:-/boot/vmlinuz-$kver}
[ -r "$image" ] ||
	fail "the BTF of kernel $kver is nowhere: no $image" \
		"linux-image-$kver is not installed, or its boot image is for root only" \
		"apt-get install linux-image-$kver, or set VMLINUZ to the image"

# number OFFSET BYTES: one of the boot header's little-endian numbers
number() {
	od -An -v "-tu$2" -j "$(($1))" -N "$2" "$image" | tr -d ' '
}

# Documentation/arch/x86/boot.rst: the compressed kernel starts payload_offset bytes after the
# real-mode code, which is setup_sects sectors and the boot sector
refuse() {
	fail "$image: $1" "it is no bzImage of x86, or damaged" "set VMLINUZ to the boot image of $kver"
}
[ "$(od -An -c -j 514 -N 4 "$image" | tr -d ' ')" = HdrS ] || refuse "no boot header"
start=$((($(number 0x1f1 1) + 1) * 512 + $(number 0x248 4)))
length=$(number 0x24c 4)
magic=$(od -An -v -tx1 -j "$start" -N 4 "$image" | tr -d ' ')
case $magic in
fd377a58) unpack='xz -dc --single-stream' ;;
28b52ffd) unpack='zstd -dc' ;;
1f8b*) unpack='gzip -dc' ;;
*) refuse "compressed in a way not known here (it starts with $magic)" ;;
esac
command -v "${unpack%% *}" >/dev/null ||
	fail "$image needs the program ${unpack%% *}" "it is not installed" \
		"apt-get install ${unpack%% *}"

# the size of the kernel follows the data; some of these programs complain about that
tail -c "+$((start + 1))" "$image" | head -c "$length" | $unpack >"$out.vmlinux" 2>/dev/null || :
objcopy --dump-section ".BTF=$out" "$out.vmlinux" /dev/null 2>/dev/null ||
	refuse "the kernel in it has no BTF"
rm -f "$out.vmlinux"
