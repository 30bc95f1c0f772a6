#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# fetch.sh LINE KVER DEST: put the unpatched rxe driver of kernel KVER into
# DEST/drivers/infiniband/sw/rxe and the version of its source into DEST/version.
# RXE_SRC or KSRC in the environment name the source. By default it is Debian's, from SOURCES
# (/usr/src) or from the package.
set -eu
. "$(dirname "$0")/fail.sh"
line=$1 kver=$2 dest=$3
rel=drivers/infiniband/sw/rxe
sources=${SOURCES:-/usr/src}

case $line in
7.x) series=$(echo "$kver" | sed -E 's/^([0-9]+\.[0-9]+).*/\1/') ;;
*) series=$line ;;
esac

# version_of TREE: the version in a kernel tree's Makefile
version_of() {
	if [ -e "$1/rocelab-version" ]; then
		cat "$1/rocelab-version"
	elif [ -e "$1/Makefile" ] && grep -q '^SUBLEVEL' "$1/Makefile"; then
		printf '%s%s\n' "$(sed -n 's/^\(VERSION\|PATCHLEVEL\|SUBLEVEL\) = //p' "$1/Makefile" | paste -sd.)" \
			"$(sed -n 's/^EXTRAVERSION = *//p' "$1/Makefile")"
	else
		echo "of unknown version from $1"
	fi
}

take() {
	rm -rf "$dest"
	mkdir -p "$dest/$rel"
	cp -R "$1/." "$dest/$rel/"
	echo "$2" >"$dest/version"
	[ -e "$dest/$rel/rxe_net.c" ] ||
		fail "no rxe driver in $1" "the folder is not drivers/infiniband/sw/rxe" \
			"point RXE_SRC at that folder, or at a kernel tree"
}

take_tree() {
	if [ -d "$1/$rel" ]; then
		take "$1/$rel" "$(version_of "$1")"
	elif [ -e "$1/rxe_net.c" ]; then
		take "$1" "$(version_of "$1/../../../..")"
	else
		fail "no rxe driver in $1" "it holds neither rxe_net.c nor $rel" \
			"point RXE_SRC or KSRC at a kernel tree or at its rxe folder"
	fi
}

package=linux-source-$series

# unpack TAR.XZ VERSION
unpack() {
	tmp=$dest.unpack
	rm -rf "$tmp"
	mkdir -p "$tmp"
	echo "unpacking rxe $2 (a minute)"
	tar -xJf "$1" -C "$tmp" --strip-components=1 "$package/$rel" ||
		fail "cannot unpack $1" "the file is damaged, or the disk full" "install $package again"
	take "$tmp/$rel" "$2"
	rm -rf "$tmp"
}

if [ -n "${RXE_SRC:-}" ]; then
	take_tree "$RXE_SRC"
	exit
fi
if [ -n "${KSRC:-}" ]; then
	take_tree "$KSRC"
	exit
fi
if [ -d "$sources/$package/$rel" ]; then
	take_tree "$sources/$package"
	exit
fi

command -v dpkg-query >/dev/null ||
	fail "the source of kernel $kver is nowhere" "this is no Debian: its kernels' sources are not known here" \
		"get the source of kernel $kver and set KSRC to that tree"

# The source must have the version of the headers, or the module would not match the kernel.
want=$(dpkg-query -W -f '${Version}' "linux-headers-$kver" 2>/dev/null) || want=
tarball=$sources/$package.tar.xz
if [ -e "$tarball" ]; then
	version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) ||
		version="unknown, from $tarball"
	if [ -z "$want" ] || [ "$version" = "$want" ]; then
		unpack "$tarball" "$version"
		exit
	fi
	echo "skipping $tarball: it has version $version, kernel $kver has $want"
fi
[ -n "$want" ] ||
	fail "the headers of kernel $kver are not installed" \
		"linux-headers-$kver is missing" "apt-get install linux-headers-$kver"

# the pool keeps one build of a series
echo "downloading $package $want"
tmp=$dest.download
rm -rf "$tmp"
mkdir -p "$tmp"
(cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download "$package=$want") ||
	fail "$package $want cannot be downloaded" \
		"no network, old package lists, or the mirror has moved on to a newer build" \
		"apt-get update; upgrade the kernel; or point RXE_SRC or KSRC at a source tree"
dpkg-deb --fsys-tarfile "$tmp"/*.deb | tar -xf - -C "$tmp" "./usr/src/$package.tar.xz"
unpack "$tmp/usr/src/$package.tar.xz" "$want"
rm -rf "$tmp"
