#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The lease of a run on this machine, held until standard input closes (lease.py).
# Comes after end_marked.sh.
#
#   lease.sh HOME WHO BY FOLDER PATIENCE MARK HANDLE SWEEP
#
# HOME  the lease's folder; empty: one of a plain user's
# WHO   who holds it, for others that want it
# BY    root, sudo, user: how the user became who runs this
# FOLDER of a run by root; PATIENCE: seconds for another run to end; MARK: variable of the run's commands;
# HANDLE of netem's queueing discipline; SWEEP: shell text that removes faults by tc
home=$1 who=$2 by=$3 folder=$4 patience=$5 mark=$6 handle=$7 sweep_faults=$8
says="rocelab-lease:"
umask 077
user=$(id -u)
# whom sudo made root
[ "$by" != sudo ] || user=${SUDO_UID:-$user}
if [ ! "$home" ]; then
	# where nobody else can write
	home=/run/user/$user
	[ -d "$home" ] && [ -O "$home" ] || home=$HOME
	home=$home/.rocelab-lease-$(uname -n)
	tries=0
	while [ -d "$folder" ]; do
		if [ "$tries" -ge $((10 * patience)) ]; then
			echo "$says busy a run by root"
			exit 3
		fi
		tries=$((tries + 1))
		sleep 0.1
	done
fi

clean() {
	end_marked "^$mark="
	if [ -s "$home/undo" ]; then
		tac "$home/undo" | while IFS= read -r line; do sh -c "$line" </dev/null; done
	fi
	rm -f "$home/undo"
	tc qdisc show | sed -n "s/^qdisc netem $handle dev \([^ ]*\) root .*/\1/p" |
		while read -r netdev; do tc qdisc del dev "$netdev" root; done
	sh -c "$sweep_faults"
	find /tmp /run /dev/shm "${TMPDIR:-/tmp}" -maxdepth 1 \( \
		-user 0 -name 'rocelab-wire-??????.pcap' -o \
		-user 0 -name 'rocelab-probe.??????' -o \
		-user "$user" -name 'rocelab-check.??????' -o \
		-user 0 -name 'rocelab-file.??????' -o \
		-user "$user" -name 'rocelab-mpi.??????' \) -exec rm -rf {} +
}

# SIGTERM ends the lease; the connection's end must not stop what follows it
trap '' HUP INT PIPE
trap : TERM
# shellcheck disable=SC3013 # dash, bash and busybox have it
until [ "$home/lock" -ef "/proc/$$/fd/9" ]; do
	mkdir -p "$home" && exec 9>>"$home/lock" || exit
	if ! flock -w "$patience" 9; then
		echo "$says busy $(head -c 200 "$home/holder")"
		exit 3
	fi
done
echo "$who, process $$ there" >"$home/holder"
clean >/dev/null 2>&1
echo "$says held"
while IFS= read -r _; do :; done
exec >/dev/null 2>&1
clean
rm -rf "$home"
