#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Waits until a process of a user's command listens at a TCP port, or with rdma_cm (ready.py).
#
#   listens.sh MARK FOLDER
#
# Processes of the command have the variable MARK with the value FOLDER. The command may share its
# processor with this: whose listeners they are is asked only when there are others than before.
mark=$1 folder=$2

has_one_of() { # SOCKETS, as in /proc/PID/fd, one a line
	# shellcheck disable=SC2013 # paths without blanks
	for environ in $(grep -lsz "^$mark=$folder\$" /proc/[0-9]*/environ); do
		ls -l "${environ%environ}fd"
	done | grep -qF "$1"
}

is_ours() { # PIDS
	for pid; do
		grep -qsz "^$mark=$folder\$" "/proc/$pid/environ" && return
	done
	return 1
}

tcp='' rdma=''
while :; do
	before=$tcp
	# columns: local address:port, remote address:port, state (0A: listening)
	tcp=$(grep -hs ' 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6)
	if [ "$tcp" ] && [ "$tcp" != "$before" ]; then
		has_one_of "$(echo "$tcp" | awk '{ print "socket:[" $10 "]" }')" && break
	fi
	before=$rdma
	rdma=$(rdma resource show cm_id)
	if [ "$rdma" != "$before" ]; then
		# shellcheck disable=SC2046 # a list of processes
		is_ours $(echo "$rdma" | sed -n 's/.* state LISTEN .* pid \([0-9]*\) .*/\1/p') && break
	fi
	sleep 0.1
done 2>/dev/null
