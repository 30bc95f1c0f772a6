#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# install.sh MODULE KVER: install the module where depmod prefers it to the stock one. SIGN_KEY and
# SIGN_CERT sign it first, with the program in the headers (KDIR).
set -eu
. "$(dirname "$0")/fail.sh"
. "$(dirname "$0")/host.sh"
module=$1 kver=$2
root=${DESTDIR:-}/lib/modules/$kver
here=
if [ -z "${DESTDIR:-}" ] && [ "$kver" = "$(uname -r)" ]; then
	here=yes
fi

[ -d "$root" ] || fail "there is no $root" "kernel $kver is not installed" "set KVER"
new=$root/updates/rdma_rxe.ko.new
{ mkdir -p "$root/updates" && cp "$module" "$new"; } ||
	fail "cannot write to $root/updates" "not root, or a read-only system" "run it as root"
trap 'rm -f "$new"' EXIT

if [ -n "${SIGN_KEY:-}" ]; then
	sign=${KDIR:-/lib/modules/$kver/build}/scripts/sign-file
	[ -x "$sign" ] ||
		fail "there is no $sign" "linux-headers-$kver is not installed" \
			"apt-get install linux-headers-$kver, or set KDIR"
	"$sign" sha256 "$SIGN_KEY" "${SIGN_CERT:?set SIGN_CERT with SIGN_KEY}" "$new" ||
		fail "the module cannot be signed" "SIGN_KEY or SIGN_CERT is wrong (see above)" \
			"give the private key and the certificate in DER form"
fi

# an unsigned module in updates/ would hide the stock one and not load
if [ -n "$here" ] && signatures_enforced && ! is_signed "$new"; then
	fail "this kernel loads signed modules only, and the module has no signature: not installed" \
		"Secure Boot or kernel lockdown is on" \
		"sign it with a key of yours that is enrolled (mokutil --import CERT.der, reboot): make -C kernel install SIGN_KEY=KEY.priv SIGN_CERT=CERT.der; or use dkms-install, which has a key of its own; or switch Secure Boot off"
fi

mv "$new" "$root/updates/rdma_rxe.ko"
depmod ${DESTDIR:+-b "$DESTDIR"} "$kver"
echo "installed $root/updates/rdma_rxe.ko"
[ -z "$here" ] || say_loaded
