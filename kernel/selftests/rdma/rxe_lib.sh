# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Two rxe devices on a veth pair of one namespace, for the tests here to source.

readonly KSFT_SKIP=4

skip()
{
	echo "SKIP: $*"
	exit "$KSFT_SKIP"
}

fail()
{
	echo "FAIL: $*"
	exit 1
}

# needs PROGRAM...
needs()
{
	local program

	[ "$(id -u)" -eq 0 ] || skip "needs root"
	for program; do
		command -v "$program" >/dev/null || skip "$program is missing"
	done
	modprobe -q rdma_rxe || skip "no rdma_rxe"
}

# wait_for SECONDS COMMAND...
wait_for()
{
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# make_veth: ksft0 and ksft1, whose packets go over the wire although both are ours
make_veth()
{
	local end

	ip link add ksft0 type veth peer name ksft1
	for end in 0 1; do
		ip addr add "198.51.100.$((end + 1))/24" dev "ksft$end"
		ip link set "ksft$end" up
	done
	trap remove_veth EXIT
}

remove_veth()
{
	local end

	for end in 0 1; do
		rdma link delete "rxe_ksft$end" 2>/dev/null
	done
	ip link delete ksft0 2>/dev/null
}

# run_verbs: the program of this test's name, with a device
run_verbs()
{
	local program=${0%.sh} output code=0

	needs ip rdma "$program"
	make_veth
	rdma link add rxe_ksft0 type rxe netdev ksft0 || fail "no device"
	output=$("$program" rxe_ksft0) || code=$?
	[ "$code" -ne "$KSFT_SKIP" ] || skip "$output"
	[ "$code" -eq 0 ] || fail "${output:-exit code $code}"
	echo "PASS"
}
