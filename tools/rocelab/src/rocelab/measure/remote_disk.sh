#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Root runs this on a node: a disk in the memory of one node, offered to another one over NVMe-oF or
# NFS by the kernel's own interfaces. rocelab copies it into the step's folder. Before each change it
# notes there how to undo it; `down` does that, then `unload` removes the modules that it loaded, also
# after a failure and after a killed run.
#
#   modules MODULE…
#   nvme-target TRANSPORT ADDRESS PORT SUBSYSTEM HOST MIB
#   nvme-host   TRANSPORT ADDRESS PORT SUBSYSTEM HOST ID OWN-ADDRESS OWNER
#   nfs-server  TRANSPORT CLIENT PORT MIB
#   nfs-client  TRANSPORT ADDRESS PORT OWN-ADDRESS
#   down
#   unload
set -eu
here=$(cd "$(dirname "$0")" && pwd)
config=/sys/kernel/config
nfsd=/proc/fs/nfsd
caches="auth.unix.ip nfsd.export nfsd.fh"
PATH=$PATH:/usr/sbin:/sbin

note() {
	echo "$*" >>"$here/undo"
}

fail() {
	echo "$*" >&2
	exit 1
}

# make a folder that was not there; configfs makes an object of it
made() {
	[ ! -e "$1" ] || fail "$1 exists"
	note rmdir "$1"
	mkdir "$1"
}

write() {
	printf '%s' "$1" >"$2"
}

# a line, as nfsd wants them: PATH WORD…
tell() {
	path=$1
	shift
	printf '%s\n' "$*" >"$path"
}

# mountpoint(1) would wait for the answer of a server that is gone, and then say no
mounted() {
	grep -qsF " $1 " /proc/self/mounts
}

# An NFS client says farewell to a server that may be gone; SIGKILL ends that, and the file system is
# detached by then.
detach() {
	timeout -s KILL 20 umount -f "$1" || ! mounted "$1" || umount -l "$1"
}

# After a killed run, both machines undo at once: a client that finds its server gone keeps its
# modules in use.
no_clients() {
	[ ! "$(ls "$nfsd/clients" 2>/dev/null)" ]
}

until_true() {
	tries=0
	until "$@"; do
		[ "$tries" -lt "${most:-300}" ] || return 1
		tries=$((tries + 1))
		sleep 0.1
	done
}

# note which modules a module brings that are not loaded yet
note_new() {
	needs=$(modprobe --show-depends "$1") || return
	for path in $(echo "$needs" | sed -n 's/^insmod \([^ ]*\).*/\1/p'); do
		name=$(basename "${path%%.ko*}" | tr - _)
		[ -d "/sys/module/$name" ] || echo "$name" >>"$here/modules"
	done
}

# did we load this module?
brought() {
	grep -qsx "$1" "$here/modules"
}

modules() {
	for module; do
		note_new "$module" || exit
		# no nullb0 for anybody who did not ask
		options=
		[ "$module" != null_blk ] || options=nr_devices=0
		modprobe "$module" $options
	done
}

nvme_target() {
	transport=$1 address=$2 port=$3 subsystem=$4 host=$5 size=$6
	[ -d "$config/nvmet" ] || fail "nvmet has no configfs, which may not be mounted"
	[ -d "$config/nullb" ] || fail "null_blk has no configfs: it may be built in"
	disk=$config/nullb/rocelab$port
	made "$disk"
	write "$size" "$disk/size"
	write 1 "$disk/memory_backed"
	note write 0 "$disk/power"
	write 1 "$disk/power"
	device=/dev/rocelab$port
	# until 6.1 such a disk had only a number
	[ -b "$device" ] || device=/dev/nullb$(cat "$disk/index")

	made "$config/nvmet/hosts/$host"
	offered=$config/nvmet/subsystems/$subsystem
	made "$offered"
	note unlink "$offered/allowed_hosts/$host"
	ln -s "$config/nvmet/hosts/$host" "$offered/allowed_hosts/$host"
	made "$offered/namespaces/1"
	write "$device" "$offered/namespaces/1/device_path"
	note write 0 "$offered/namespaces/1/enable"
	write 1 "$offered/namespaces/1/enable"

	listening=$config/nvmet/ports/$port
	made "$listening"
	write "$transport" "$listening/addr_trtype"
	write ipv4 "$listening/addr_adrfam"
	write "$address" "$listening/addr_traddr"
	write "$port" "$listening/addr_trsvcid"
	note unlink "$listening/subsystems/$subsystem"
	ln -s "$offered" "$listening/subsystems/$subsystem"
}

# the disk of a subsystem; with multipath its parent is the subsystem, else the controller
find_disk() {
	for block in /sys/block/nvme*n*; do
		[ "$(cat "$block/device/subsysnqn" 2>/dev/null)" = "$1" ] || continue
		case ${block##*/} in *c*n*) continue ;; esac
		[ -b "/dev/${block##*/}" ] || continue
		disk=/dev/${block##*/}
		return 0
	done
	return 1
}

nvme_host() {
	transport=$1 address=$2 port=$3 subsystem=$4 host=$5 id=$6 own=$7 owner=$8
	note disconnect "$subsystem"
	# No keep-alive within a step: its packets would be counted on one end only, or not captured.
	# nvme-fabrics writes its reasons into the kernel's log.
	write "nqn=$subsystem,transport=$transport,traddr=$address,trsvcid=$port,host_traddr=$own,\
hostnqn=$host,hostid=$id,keep_alive_tmo=86400,ctrl_loss_tmo=10,reconnect_delay=2" \
		/dev/nvme-fabrics || fail "$(dmesg | grep -i nvme | tail -n 3)"
	until_true find_disk "$subsystem" || fail "no disk of $subsystem appeared"
	chown "$owner" "$disk"
	note unlink "$here/disk"
	ln -s "$disk" "$here/disk"
}

disconnect() {
	for controller in /sys/class/nvme-fabrics/ctl/nvme*; do
		[ "$(cat "$controller/subsysnqn" 2>/dev/null)" != "$1" ] ||
			write 1 "$controller/delete_controller"
	done
}

# let nfsd remember clients in our folder, if it can and the setting can be restored: it accepts only
# a folder that exists
remember_clients() {
	setting=$nfsd/nfsv4recoverydir
	[ -e "$setting" ] || return 0
	before=$(cat "$setting")
	if [ -d "$before" ]; then
		note tell "$setting" "$before"
	elif ! brought nfsd; then
		return 0
	fi
	note remove "$here/recovery"
	mkdir "$here/recovery"
	tell "$setting" "$here/recovery"
	note_new md5 2>/dev/null || true
}

# What rpc.mountd would answer to the kernel's questions is written in advance: an address is of the
# domain, and its NFSv4 root (fsid 0) is a file system in memory, where everybody is nobody.
nfs_server() {
	transport=$1 client=$2 port=$3 size=$4
	if ! mounted "$nfsd"; then
		note umount "$nfsd"
		mount -t nfsd nfsd "$nfsd"
	elif brought nfsd; then
		note umount "$nfsd"
	fi
	[ "$(cat "$nfsd/threads")" = 0 ] || fail "an NFS server runs there already"
	made "$here/export"
	note umount "$here/export"
	mount -t tmpfs -o "size=$((size + 8))m,mode=0755" rocelab "$here/export"
	truncate -s "${size}M" "$here/export/disk"
	chown 65534:65534 "$here/export/disk"
	note flush
	domain=rocelab forever=2147483647
	# NFSEXP_ALLSQUASH, NFSEXP_NOSUBTREECHECK and NFSEXP_FSID (linux/nfsd/export.h)
	flags=$((0x8 | 0x400 | 0x2000))
	tell /proc/net/rpc/auth.unix.ip/channel nfsd "$client" "$forever" "$domain"
	tell /proc/net/rpc/nfsd.export/channel \
		"$domain" "$here/export" "$forever" "$flags" 65534 65534 0
	# FSID_NUM, with number 0: the root of version 4
	tell /proc/net/rpc/nfsd.fh/channel "$domain" 1 '\x00000000' "$forever" "$here/export"
	note tell "$nfsd/versions" "$(cat "$nfsd/versions")"
	# version 3 would need rpcbind, lockd and mountd
	tell "$nfsd/versions" -3 +4 +4.1 +4.2
	# A grace period would delay the first file by 90 s, but nobody has locks to reclaim. Linux ends it
	# only where it can remember clients; 10 s are the shortest.
	note tell "$nfsd/nfsv4gracetime" "$(cat "$nfsd/nfsv4gracetime")"
	tell "$nfsd/nfsv4gracetime" 10
	remember_clients
	note tell "$nfsd/threads" 0
	note clients
	tell "$nfsd/portlist" "$transport" "$port"
	tell "$nfsd/threads" 8
	tell "$nfsd/v4_end_grace" Y 2>/dev/null || true
	until_true grep -q Y "$nfsd/v4_end_grace" || fail "the NFS server's grace period does not end"
}

nfs_client() {
	transport=$1 address=$2 port=$3 own=$4
	# the client asks for it, although nothing is secret here
	note_new rpcsec_gss_krb5 2>/dev/null || true
	made "$here/mnt"
	note umount "$here/mnt"
	# -i: the kernel needs no help from nfs-common to mount version 4
	mount -i -t nfs4 -o "vers=4.2,proto=$transport,port=$port,addr=$address,clientaddr=$own,soft" \
		"$address:/" "$here/mnt" || fail "$(dmesg | grep -iE 'nfs|rpc' | tail -n 3)"
	note unlink "$here/disk"
	ln -s mnt/disk "$here/disk"
}

undo() {
	what=$1
	shift
	case $what in
	rmdir) [ ! -d "$1" ] || rmdir "$1" ;;
	unlink) rm -f "$1" ;;
	remove) rm -rf --one-file-system "$1" ;;
	umount) ! mounted "$1" || detach "$1" ;;
	clients) most=100 until_true no_clients || true ;;
	disconnect) disconnect "$1" ;;
	flush) for cache in $caches; do tell "/proc/net/rpc/$cache/flush" 1; done ;;
	write) [ ! -e "$2" ] || write "$1" "$2" ;;
	tell) [ ! -e "$1" ] || tell "$@" ;;
	esac
}

down() {
	[ -s "$here/undo" ] || return 0
	failed=
	tac "$here/undo" >"$here/undoing"
	while read -r line; do
		# shellcheck disable=SC2086 # a list of words
		undo $line </dev/null || failed="$failed; $line"
	done <"$here/undoing"
	rm -f "$here/undo" "$here/undoing"
	[ ! "$failed" ] || fail "could not undo${failed#;}"
}

# what still uses a module goes first, and what others use since stays
unload() {
	tries=0
	while [ -s "$here/modules" ] && [ "$tries" -lt 20 ]; do
		[ "$tries" -lt 2 ] || sleep 0.1
		tries=$((tries + 1))
		for name in $(tac "$here/modules"); do
			if [ ! -d "/sys/module/$name" ] || rmmod "$name" 2>/dev/null; then
				sed -i "/^$name\$/d" "$here/modules"
			fi
		done
	done
	rm -f "$here/modules"
}

command=$1
shift
case $command in
modules | down | unload) "$command" "$@" ;;
nvme-target) nvme_target "$@" ;;
nvme-host) nvme_host "$@" ;;
nfs-server) nfs_server "$@" ;;
nfs-client) nfs_client "$@" ;;
*) fail "unknown command $command" ;;
esac
