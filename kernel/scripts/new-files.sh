# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# new_files KERNEL: the files in src/ as PATCH:FILE, with the patch of the series that each belongs
# to: the first one of its group, or the first one that needs it. For scripts to read with `.`.

new_files() {
	for file in "$1"/src/*.[ch]; do
		case $file in
		*/rxe_v1.*) patch=$(find "$1/patches/v1" -name '*.patch' | sort | head -n 1) ;;
		*/rxe_drop.h) patch=$(find "$1/patches/events" -name '*-Tell-the-network-stack-*.patch') ;;
		*/rxe_stage.* | */rxe_trace_stages.h | */rxe_stamp.h | */rxe_record.h)
			patch=$(find "$1/patches/events" -name '*-of-packet-sta.patch')
			;;
		*) patch=$(find "$1/patches/events" -name '*.patch' | sort | head -n 1) ;;
		esac
		echo "$(basename "$patch"):$file"
	done
}
