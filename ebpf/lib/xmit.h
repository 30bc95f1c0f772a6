/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What xmit.bpf.h stores of a sent packet on its way to the device. */
#ifndef ROCELAB_XMIT_H
#define ROCELAB_XMIT_H

#include <linux/types.h>

#define XMIT_ENTRIES 32768
struct xmit_pending {
	__u64 skb; /* address, 0: empty */
	__u64 start;
	__u32 slot; /* the probe's own: where the time goes */
	__u32 dqpn;
	__u32 psn;
	__u32 unused;
};

#endif /* ROCELAB_XMIT_H */
