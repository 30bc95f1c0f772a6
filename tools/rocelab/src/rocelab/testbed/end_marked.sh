#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The function `end_marked PATTERN`, for scripts that come after it: kills the processes of which a
# variable matches, also those that start meanwhile.

end_marked() {
	marking=$1
	tries=0
	clean=0
	while [ "$clean" -lt 5 ] && [ "$tries" -lt 100 ]; do
		[ "$tries" -eq 0 ] || sleep 0.05
		tries=$((tries + 1))
		clean=$((clean + 1))
		set -- /proc/[0-9]*/environ
		looked_at=$*
		for each in $(environments "$marking" "$@"); do
			process=${each#*:}
			case $each in
			marked:*) kill -s KILL "$process" ;;
			# zombies and threads of the kernel have no program
			*) [ -e "/proc/$process/exe" ] || continue ;;
			esac
			clean=0
		done
		# Where no process has started, none was missed. Elsewhere five looks have to do.
		set -- /proc/[0-9]*/environ
		[ "$clean" -eq 0 ] || [ "$*" != "$looked_at" ] || return 0
	done
}

# Of `environments PATTERN FILE...`, prints marked:PID if a variable matches, none:PID if there is
# no variable: while a process replaces its program, it seems to have none (fs/exec.c: its memory is
# new, and env_end is 0). Each file is read once, since at a second reading it may have them again.
environments() {
	pattern=$1
	shift
	# of each variable what matches, else its first byte
	LC_ALL=C grep -aHosz -e "$pattern" -e '^.' "$@" | tr '\0' '\n' | LC_ALL=C awk -F / '
		BEGIN { files = ARGC; ARGC = 1 }
		{ known[$3] = 1 }
		/:../ { print "marked:" $3 }
		END {
			for (i = 1; i < files; i++) {
				split(ARGV[i], part, "/")
				if (!(part[3] in known))
					print "none:" part[3]
			}
		}' "$@"
}
