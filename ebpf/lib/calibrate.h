/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures a clock read and a run of each program on this machine, by BPF_PROG_TEST_RUN. */
#ifndef ROCELAB_CALIBRATE_H
#define ROCELAB_CALIBRATE_H

#include "packet_filter.h"
#include "rxe_record.h"

struct bpf_program;

/* clock reads in one run of calibrate_clock (calibrate.bpf.h), which does nothing else */
#define CALIBRATE_CLOCK_READS 64

/*
 * ns per run of a socket program: the fastest of ten rounds, because interrupts lengthen the
 * others. NaN if it is not loaded, or the kernel refuses to run it.
 */
double calibrate_run_ns(const struct bpf_program *program);

/* ns, of a probe that watches packets; NaN if it cannot be measured */
struct calibration {
	double clock; /* one clock read: every stage contains one */
	double tx, xmit, rx, done;
};

/* such a probe's calibration programs, and the records that they run on */
struct calibration_subject {
	const struct bpf_program *empty, *clock, *tx, *xmit, *rx, *done;
	/* of the layouts of packet_tx, packet_rx and packet_done; NULL: the caller makes them */
	void *tx_record, *rx_record, *done_record;
	__u32 dev; /* a device that passes the filter */
};

/* a packet that passes the filters; PSN 0 is in every sample */
struct packet_id calibrate_packet_id(__u32 dev, const struct packet_filter *filter);
/* ns of stage i of such a packet: of typical length */
static inline __u32 calibrate_stage_ns(int i)
{
	return 100 + 200 * i;
}

/* for a skeleton with the usual names of programs and records */
#define CALIBRATION_SUBJECT(skel)                                   \
	{                                                           \
		.empty = (skel)->progs.calibrate_empty,             \
		.clock = (skel)->progs.calibrate_clock,             \
		.tx = (skel)->progs.calibrate_tx,                   \
		.xmit = (skel)->progs.calibrate_xmit,               \
		.rx = (skel)->progs.calibrate_rx,                   \
		.done = (skel)->progs.calibrate_done,               \
		.tx_record = &(skel)->bss->calibrate_record.tx,     \
		.rx_record = &(skel)->bss->calibrate_record.rx,     \
		.done_record = &(skel)->bss->calibrate_record.done, \
		.dev = (skel)->bss->filter_dev,                     \
	}

/* Call before attaching. The programs leave counts in their maps; the caller resets them. */
void calibrate(const struct calibration_subject *subject, const struct packet_filter *filter,
	       struct calibration *cost);

#endif /* ROCELAB_CALIBRATE_H */
