/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Wait for all BPF programs that were running at the time of the call. */
#ifndef ROCELAB_QUIESCE_H
#define ROCELAB_QUIESCE_H

struct quiesce {
	int inner, outer;
};

/* 0 or a negative errno */
int quiesce_open(struct quiesce *q);
int quiesce_wait(const struct quiesce *q);
void quiesce_close(struct quiesce *q);

#endif /* ROCELAB_QUIESCE_H */
