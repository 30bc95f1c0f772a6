# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# fail WHAT CAUSE ACTION: report an error of any script here and exit
fail() {
	printf 'kernel: %s\n  likely cause: %s\n  what to do: %s\n' "$1" "$2" "$3" >&2
	exit 1
}
