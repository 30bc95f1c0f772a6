#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A link that cannot be added, because its name exists, leaves no UDP socket open.
# shellcheck source=rxe_lib.sh
. "$(dirname "$0")/rxe_lib.sh"

port_is_open()
{
	ss -Huln 'sport = :4791' | grep -q .
}

needs ip rdma ss
port_is_open && skip "port 4791 is open without these devices: the module has the sockets"
make_veth
rdma link add rxe_ksft0 type rxe netdev ksft0 || fail "no device"
rdma link add rxe_ksft0 type rxe netdev ksft1 2>/dev/null && fail "two devices of one name"
port_is_open || fail "the port of the device is closed"
rdma link delete rxe_ksft0
port_is_open && fail "port 4791 stays open"
echo "PASS"
