#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The function `end_marked PATTERN`, for scripts that come after it: kills the processes of which a
# variable matches, also those that start meanwhile.

end_marked() {
	tries=0
	while [ "$tries" -lt 100 ]; do
		ours=$(grep -lsz "$1" /proc/[0-9]*/environ | cut -d/ -f3)
		if [ "$ours" ]; then
			# shellcheck disable=SC2086 # a list of processes
			kill -s KILL $ours
		elif [ "$tries" -ge 5 ] || ! some_have_no_environment; then
			break
		fi
		tries=$((tries + 1))
		sleep 0.05
	done
}

# While a process replaces its program, it seems to have no environment (fs/exec.c: its memory is
# new, and env_end is 0). Zombies and threads of the kernel have no program.
some_have_no_environment() {
	grep -Lsz '' /proc/[0-9]*/environ | {
		while read -r environ; do
			[ ! -e "${environ%environ}exe" ] || exit 0
		done
		exit 1
	}
}
