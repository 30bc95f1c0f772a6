#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a user's command, and says how it ended (session.py). Comes after end_marked.sh.
#
#   command.sh MARK FOLDER NAME=VALUE... -- COMMAND...
#
# MARK    variable that the command and its children have; its value is FOLDER
# FOLDER  of the command's guard (guard.sh): `files` is where it runs; `group`, `took` (when it began and
#         ended, ns) and `status` are written
mark=$1 folder=$2
shift 2
# the command gets signals as well, with their usual effect
trap : HUP INT QUIT TERM USR1 USR2
read -r _ _ _ _ group _ <"/proc/$$/stat"
echo "$group" >"$folder/group.part" && mv "$folder/group.part" "$folder/group" || exit 125
cd "$folder/files" || exit 125

# This shell says on stderr what a signal did to a command; only the command's own text belongs there.
exec 3>&2 2>/dev/null
(
	exec 2>&3 3>&-
	export "$mark=$folder"
	while [ "$1" != -- ]; do
		# shellcheck disable=SC2163 # the argument is NAME=VALUE
		export "$1"
		shift
	done
	shift
	# what would make exec print an error of this shell; how it cannot run is said by rocelab
	path=$1
	case $1 in
	*/*) ;;
	*)
		path=
		IFS=:
		for place in $PATH; do
			[ -f "$place/$1" ] && path=$place/$1 && [ -x "$path" ] && break
		done
		unset IFS
		;;
	esac
	if [ ! -e "$path" ]; then echo absent >"$folder/refused" && exit 127; fi
	if [ ! -f "$path" ] || [ ! -x "$path" ]; then echo "mode $path" >"$folder/refused" && exit 126; fi
	case $1 in
	*/*)
		# a shell would run a program for another machine as a script; 0300: i386, which may run
		about=$(od -An -tx1 -N20 -- "$path" | tr -d ' \n')
		mine=$(od -An -tx1 -N20 /bin/sh | tr -d ' \n')
		case $about in
		7f454c46*"${mine#????????????????????????????????????}" | 7f454c46*0300) ;;
		7f454c46*) echo "machine $about" >"$folder/refused" && exit 126 ;;
		2321*)
			IFS=' 	' read -r first _ <"$path"
			first=${first#"#!"}
			if [ "$first" ] && [ ! -e "$first" ]; then
				echo "interpreter $first" >"$folder/refused" && exit 127
			fi
			;;
		esac 2>/dev/null
		;;
	esac
	date +%s%N >"$folder/took"
	exec "$@"
)
status=$?
date +%s%N >>"$folder/took"
if [ "$status" = 127 ] && [ ! -e "$folder/refused" ]; then
	# a program whose loader is not there
	while [ "$1" != -- ]; do shift; done
	loader=$(head -c 4096 -- "$2" | tr '\0' '\n' | grep -am1 '^/.*/ld-')
	[ ! "$loader" ] || [ -e "$loader" ] || echo "interpreter $loader" >"$folder/refused"
fi

# what still runs would keep the streams open
end_marked "^$mark=$folder\$"
echo "$status" >"$folder/status"
exit "$status"
