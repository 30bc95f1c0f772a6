# SPDX-License-Identifier: GPL-2.0-or-later
# Installs packages in a copy of a node's image (package_image.py); mmdebstrap's hook: ROOT.
# ROOT/usr/src/wanted has `names`, one a line, and .deb files; it goes, and ROOT/usr/src/packages.tsv
# says what is installed then.
# shellcheck shell=sh disable=SC2016 # what stands in single quotes is for a shell in the chroot
chroot "$1" sh -eu -c '
	cd /usr/src/wanted
	# the sources of packages would double what is downloaded
	grep "^deb " /etc/apt/sources.list >sources.list
	apt() {
		apt-get -qq -y -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$PWD/sources.list" \
			-o Dpkg::Use-Pty=0 "$@"
	}
	# files may need nothing from a mirror
	apt update || [ ! -s names ] || { echo "rocelab: no mirror" >&2; exit 1; }
	set --
	while read -r name; do
		# apt-get takes a name that it does not know for a regular expression
		apt-cache pkgnames "$name" | grep -qxF -e "$name" || { echo "rocelab: unknown $name" >&2; exit 1; }
		set -- "$@" "$name"
	done <names
	for file in *.deb; do
		[ ! -e "$file" ] || set -- "$@" "./$file"
	done
	apt --no-install-recommends install "$@" || { echo "rocelab: refused" >&2; exit 1; }
	cd /
	rm -r /usr/src/wanted
	dpkg-query -W -f "\${Package}\t\${Version}\n" >/usr/src/packages.tsv
'
