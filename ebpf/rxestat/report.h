/* SPDX-License-Identifier: GPL-2.0-only */
/* What was measured, apart from how it is read and how it is printed. */
#ifndef RXESTAT_REPORT_H
#define RXESTAT_REPORT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "driver.h"
#include "hist.h"
#include "load.h"
#include "rdma_dev.h"
#include "rxestat.h"

enum direction { DIR_TX, DIR_RX, DIRECTIONS };

/* stages of a direction in the order of a packet's way; names in report.c */
enum {
	TX_XMIT = RXE_TX_STAGES,
	TX_ALL_STAGES,
	RX_DONE = RXE_RX_STAGES, /* the first of rxe_rx_done's */
	RX_ALL_STAGES = RX_DONE + RXE_DONE_STAGES,
	MAX_STAGES = TX_ALL_STAGES
};
extern const char *const stage_names[DIRECTIONS][MAX_STAGES];
extern const int stage_count[DIRECTIONS];
/* the stages whose sum is encapsulation (tx) or decapsulation (rx) */
bool stage_is_capsule(enum direction dir, int stage);
/* whether a driver can show a stage at all */
bool stage_can_be_had(enum driver_kind driver, enum direction dir, int stage);

struct counts {
	__u64 packets;	/* in the histograms */
	__u64 switched; /* left out: the task was switched out in between */
	__u64 loopback; /* of packets */
};

/* the packets of one kind; key as in rxestat.h */
struct group {
	enum direction dir;
	__u32 key;
	struct counts seen; /* sent, or arrived */
	struct counts done; /* received and finished */
	struct hist stage[MAX_STAGES];
};

/* all groups, found by direction and key */
struct groups {
	struct group *at[DIRECTIONS][KEYS];
};

/* made when new; NULL: out of memory */
struct group *groups_get(struct groups *groups, enum direction dir, __u32 key);
void groups_clear(struct groups *groups);
int groups_merge(struct groups *into, const struct groups *from);

#define MAX_PROGRAMS 16

/* costs in ns, measured on this machine before the session; NaN if it could not be */
struct calibration {
	double clock; /* one clock read: every stage contains one */
	double tx, xmit, rx, done;
};

struct session {
	const char *node;
	struct driver driver;
	const char *accelerator;
	__u64 start_ns, end_ns; /* CLOCK_MONOTONIC */
	__u64 start_wall_ns;	/* CLOCK_REALTIME */
	unsigned int interval;	/* its number, from 1; 0: the whole session */
	bool bpf_stats;
	struct calibration cost;
	__u64 lost; /* events without a cell */
	struct program_stats programs[MAX_PROGRAMS];
	int nprograms;
	/* of class numbers in keys */
	__u8 service[MAX_CLASSES], class[MAX_CLASSES];
	__u32 dev_index[DEV_PLACES]; /* + 1; 0: none */
};

/* runs that the kernel skipped because the program was at work on that CPU: packets without stages
 */
__u64 session_missed(const struct session *s);

/* fields of a key */
static inline unsigned int key_size(__u32 key)
{
	return key & ((1 << KEY_SIZE_BITS) - 1);
}

static inline unsigned int key_class(__u32 key)
{
	return key >> KEY_SIZE_BITS & (MAX_CLASSES - 1);
}

static inline unsigned int key_net(__u32 key)
{
	return key >> KEY_NET_SHIFT & ((1 << KEY_NET_BITS) - 1);
}

static inline unsigned int key_dev(__u32 key)
{
	return key >> KEY_DEV_SHIFT & (DEV_PLACES - 1);
}

const char *net_name(unsigned int net);
/* the device's name, or "ib<index>" when it has gone; in the caller's buffer */
const char *dev_name(const struct session *s, unsigned int place, char name[RDMA_DEV_NAME_LEN]);

void print_table(FILE *out, const struct session *s, const struct groups *groups);
void print_json(FILE *out, const struct session *s, const struct groups *groups);

#endif /* RXESTAT_REPORT_H */
