# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# Facts about the running kernel for install.sh and uninstall.sh. Tests set SYS instead of /sys.
sys=${SYS:-/sys}

# true if this kernel loads only signed modules
signatures_enforced() {
	# four bytes of attributes, then the value
	secure=$(od -An -tu1 -j 4 -N 1 "$sys"/firmware/efi/efivars/SecureBoot-* 2>/dev/null | tr -d ' ')
	[ "$secure" = 1 ] && return
	[ "$(cat "$sys/module/module/parameters/sig_enforce" 2>/dev/null)" = Y ] && return
	grep -qE '\[(integrity|confidentiality)\]' "$sys/kernel/security/lockdown" 2>/dev/null
}

# true if the module is signed
is_signed() {
	tail -c 28 "$1" | grep -q 'Module signature appended'
}

# "rxe0 on eth0" for each device of rxe
rxe_devices() {
	for parent in "$sys"/class/infiniband/*/parent; do
		[ -e "$parent" ] || continue
		device=${parent%/parent}
		printf '%s on %s\n' "${device##*/}" "$(cat "$parent")"
	done
}

# say_loaded: report the loaded module, which stays until it is replaced, and how to replace it
say_loaded() {
	[ -d "$sys/module/rdma_rxe" ] || return 0
	version=$(cat "$sys/module/rdma_rxe/version" 2>/dev/null || echo "the stock one")
	echo "note: the kernel keeps using the loaded rdma_rxe ($version)"
	devices=$(rxe_devices)
	if [ -n "$devices" ]; then
		echo "  it is in use: $(echo "$devices" | paste -sd, | sed 's/,/, /g')"
		echo "  what to do: end the programs that use these devices, then"
		echo "$devices" | while read -r device _ _; do
			echo "    rdma link delete $device"
		done
	else
		echo "  what to do:"
	fi
	echo "    modprobe -r rdma_rxe && modprobe rdma_rxe"
	echo "$devices" | while read -r device _ netdev; do
		[ -z "$device" ] || echo "    rdma link add $device type rxe netdev $netdev"
	done
}
