/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads what losses.bpf.h counts. */
#ifndef LOSS_READER_H
#define LOSS_READER_H

#include "stat_losses.h"
#include "stat_owners.h"

struct rxestat_bpf;

struct loss_reader {
	int places;
	struct loss_place *now, *before; /* at the last reading, and when the interval began */
};

/* 0 or a negative errno */
int loss_reader_open(struct loss_reader *reader, struct losses *losses, int places);
/* What came since the interval began, with the numbers of one group together. 0 or an errno. */
int loss_reader_read(struct loss_reader *reader, const struct rxestat_bpf *skel,
		     const struct stat_owners *owners, struct losses *losses);
/* An interval begins where the last reading was. */
void loss_reader_restart(struct loss_reader *reader);
/* Zero what was counted. Only while no program is attached. 0 or an errno. */
int loss_reader_forget(struct loss_reader *reader, const struct rxestat_bpf *skel);
void loss_reader_close(struct loss_reader *reader, struct losses *losses);

#endif /* LOSS_READER_H */
