/* SPDX-License-Identifier: GPL-2.0-only */
/* The table, on paper or on a screen. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include "top_report.h"

struct frame {
	int width, height; /* 0: as much as there is */
	size_t top;	   /* the first row to show; corrected if there are not so many */
	bool paused;
	const char *prompt; /* what is being typed; NULL: nothing */
	bool help;	    /* the keys instead of queue pairs */
};

/* Lines, each with its newline. */
void print_screen(FILE *out, const struct report *report, const struct config *config,
		  struct frame *frame);

#endif /* TOP_SCREEN_H */
