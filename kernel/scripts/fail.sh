# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# fail WHAT CAUSE ACTION: how every script here gives up
fail() {
	printf 'kernel: %s\n  likely cause: %s\n  what to do: %s\n' "$1" "$2" "$3" >&2
	exit 1
}
