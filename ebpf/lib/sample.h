/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which packets the driver takes times of, and how many there were in all. */
#ifndef ROCELAB_SAMPLE_H
#define ROCELAB_SAMPLE_H

#include <linux/types.h>
#include <stdbool.h>

#define SAMPLE_DEVICES 64
#define SAMPLE_MAX     4096

/* increments of sent_pkts and rcvd_pkts; unknown if a device came or went meanwhile */
struct packet_totals {
	bool known;
	__u64 sent, received;
};

struct sample {
	__u32 one_of;	    /* 1: every packet */
	int fd;		    /* of the driver's parameter, which it locks; -1: closed */
	int writable;	    /* the same, to write it; a negative errno if we may not */
	const char *device; /* NULL: all */
	struct packet_totals start;
	__u32 devices; /* a hash of their indices: whether they are the same at the end */
};

/*
 * Tell the driver. Its choice holds for all programs that count, so one that samples runs alone;
 * one that was killed leaves its choice, and the next one corrects it. Returns 0, or prints the
 * error and returns the exit status.
 */
int sample_begin(struct sample *s, __u32 one_of, const char *device);
/* Call when counting begins, after each interval too. */
void sample_restart(struct sample *s);
struct packet_totals sample_totals(const struct sample *s);
/* Also after an error, or without sample_begin(). */
void sample_end(struct sample *s);

#endif /* ROCELAB_SAMPLE_H */
