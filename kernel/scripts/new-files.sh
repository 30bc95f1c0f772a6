# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# new_files KERNEL: the files in src/ as PATCH:FILE, with the patch of the series that each belongs
# to: the first one of its group. For scripts to read with `.`.

new_files() {
	for file in "$1"/src/*.[ch]; do
		case $file in
		*/rxe_v1.*) group=v1 ;;
		*) group=events ;;
		esac
		echo "$(basename "$(find "$1/patches/$group" -name '*.patch' | sort | head -n 1)"):$file"
	done
}
