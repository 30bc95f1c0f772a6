/* SPDX-License-Identifier: GPL-2.0-only */
/* All queue pairs: those that the kernel lists, and those that the programs have counted. */
#ifndef QP_LIST_H
#define QP_LIST_H

#include <stddef.h>

#include "qp_row.h"
#include "task_place.h"

struct qp_entry {
	struct qp_row row;
	struct qp_counts before; /* this interval */
	struct qp_interval interval;
};

struct qp_list {
	struct qp_entry **at; /* by device and number */
	size_t n, room;
	__u64 looked_ns; /* CLOCK_MONOTONIC of the last look; 0: none yet */
	double seconds;	 /* from the look before to the last; infinite at first */
	/* of the last look: queue pairs of processes whose places we may not see */
	size_t hidden;
};

/* which of them */
struct qp_choice {
	const char *device; /* NULL: all */
	struct task_places places;
	bool named; /* also find out the names of the places */
};

/*
 * Look at all of them. map: qps of rxetop.bpf.c. Of a device that was not chosen none is in the
 * list, of other places all, but `elsewhere`. Queue pairs that have gone and count nothing more
 * leave list and map. 0 or a negative errno.
 */
int qp_list_look(struct qp_list *list, int map, const struct qp_choice *choice, __u32 one_of);
/* The stage has changed: what was counted until now belongs to another. */
int qp_list_forget_stage(struct qp_list *list, int map);
void qp_list_free(struct qp_list *list);

#endif /* QP_LIST_H */
