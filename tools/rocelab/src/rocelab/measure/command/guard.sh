#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Guards a user's command on this machine (guard.py): makes the folder that it runs in, passes
# signals to it, and ends all that it started and removes the folder when standard input closes.
# Comes after end_marked.sh.
#
#   guard.sh MARK
#
# MARK  variable that the command and its children have; its value is the folder
# Each line of standard input is the name of a signal.
mark=$1
umask 077
trap '' HUP INT TERM PIPE
folder=$(mktemp -d "${TMPDIR:-/tmp}/rocelab-exec.XXXXXX") && mkdir "$folder/files" || exit
echo "rocelab-exec: $folder $(date +%s)"
while IFS= read -r signal; do
	tries=0
	# the command may be about to start
	until [ -s "$folder/group" ] || [ "$tries" -ge 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	read -r group <"$folder/group" && kill -s "$signal" -- "-$group"
done 2>/dev/null
exec >/dev/null 2>&1
end_marked "^$mark=$folder\$"
rm -rf "$folder"
