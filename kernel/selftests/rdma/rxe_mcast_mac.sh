#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A QP in an IPv4 multicast group lets its device listen to that group's Ethernet address, and not to
# that of an IPv6 group with the same last bytes.
# shellcheck source=rxe_lib.sh
. "$(dirname "$0")/rxe_lib.sh"

readonly GROUP=239.1.2.3 IPV4=01:00:5e:01:02:03 IPV6=33:33:ef:01:02:03

listens_to()
{
	ip maddr show dev ksft0 | grep -qi "$1"
}

attached()
{
	listens_to "$IPV4" || listens_to "$IPV6"
}

needs ip rdma mckey
modprobe -q rdma_ucm || skip "no rdma_ucm"
make_veth
rdma link add rxe_ksft0 type rxe netdev ksft0 || fail "no device"
mckey -m "$GROUP" -b 198.51.100.1 >/dev/null 2>&1 &
receiver=$!
trap 'kill $receiver 2>/dev/null; wait; remove_veth' EXIT
wait_for 20 attached || fail "mckey joined no group"
# the join of IP comes before the attachment of the QP
wait_for 5 listens_to "$IPV6" && fail "the device listens to $IPV6"
listens_to "$IPV4" || fail "the device does not listen to $IPV4"
echo "PASS"
