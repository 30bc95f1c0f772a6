#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A packet on a VLAN has the PCP that the VLAN device makes of its service level.
# shellcheck source=rxe_lib.sh
. "$(dirname "$0")/rxe_lib.sh"

readonly MESSAGES=20

# index of the GID of RoCE v2 with the device's IPv4 address
gid_index()
{
	local folder=/sys/class/infiniband/$1/ports/1 entry

	for entry in "$folder"/gid_attrs/types/*; do
		grep -qs v2 "$entry" && grep -q "ffff:c633" "$folder/gids/${entry##*/}" &&
			echo "${entry##*/}" && return
	done
}

listening()
{
	ss -Htln 'sport = :18599' | grep -q .
}

# count [FILTER]: packets in the capture
count()
{
	tcpdump -enr "$CAPTURE" "$@" 2>/dev/null | wc -l
}

all_captured()
{
	[ "$(count)" -ge $((2 * MESSAGES)) ]
}

needs ip rdma ss tcpdump ib_send_lat
folder=$(mktemp -d) || fail "no temporary folder"
CAPTURE=$folder/pcap
trap 'rm -rf "$folder"' EXIT
make_veth
trap 'remove_veth; rm -rf "$folder"' EXIT
for end in 0 1; do
	ip addr flush dev "ksft$end"
	ip link add link "ksft$end" name "ksft$end.7" type vlan id 7 egress-qos-map 3:5
	ip addr add "198.51.100.$((end + 1))/24" dev "ksft$end.7"
	ip link set "ksft$end.7" up
	for name in "ksft$end" "ksft$end.7"; do
		sysctl -qw "net.ipv4.conf.${name/./\/}.rp_filter=0"
		sysctl -qw "net.ipv4.conf.${name/./\/}.accept_local=1"
	done
	rdma link add "rxe_ksft$end" type rxe netdev "ksft$end" || fail "no device"
done
sysctl -qw net.ipv4.conf.all.rp_filter=0
for end in 0 1; do
	ip neigh replace "198.51.100.$((2 - end))" dev "ksft$end.7" nud permanent \
		lladdr "$(cat /sys/class/net/ksft$((1 - end)).7/address)"
done
tcpdump -Z root -i ksft0 --immediate-mode -Uw "$CAPTURE" "vlan 7 and udp port 4791" 2>"$CAPTURE.log" &
capture=$!
trap 'kill $capture 2>/dev/null; wait; remove_veth; rm -rf "$folder"' EXIT
wait_for 20 grep -q "listening on" "$CAPTURE.log" || fail "no capture"
test_of=(ib_send_lat -n "$MESSAGES" -p 18599 --sl 3 -d)
"${test_of[@]}" rxe_ksft1 -x "$(gid_index rxe_ksft1)" >/dev/null 2>&1 &
wait_for 20 listening || fail "no server"
"${test_of[@]}" rxe_ksft0 -x "$(gid_index rxe_ksft0)" 127.0.0.1 >/dev/null || fail "no traffic"
wait_for 20 all_captured || fail "only $(count) packets were captured"
packets=$(count) marked=$(count "ether[14] >> 5 == 5")
[ "$marked" -eq "$packets" ] || fail "$marked of $packets packets have PCP 5"
echo "PASS"
