/* SPDX-License-Identifier: GPL-2.0-only */
/* Calibration programs: an empty one, whose time is subtracted from the others', and clock reads.
 */
#ifndef ROCELAB_CALIBRATE_BPF_H
#define ROCELAB_CALIBRATE_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "calibrate.h"

__u64 calibrate_sink = 0;

SEC("socket")
int calibrate_empty(struct __sk_buff *ctx)
{
	return 0;
}

SEC("socket")
int calibrate_clock(struct __sk_buff *ctx)
{
	__u64 sum = 0;

#pragma unroll
	for (int i = 0; i < CALIBRATE_CLOCK_READS; i++)
		sum += bpf_ktime_get_ns();
	calibrate_sink = sum;
	return 0;
}

#endif /* ROCELAB_CALIBRATE_BPF_H */
