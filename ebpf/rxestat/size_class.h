/* SPDX-License-Identifier: GPL-2.0-only */
/* Size classes of a packet's payload: 0, then up to 64 bytes, 128, 256, … 4096, and beyond. */
#ifndef RXESTAT_SIZE_CLASS_H
#define RXESTAT_SIZE_CLASS_H

#include "rxestat.h"

static inline __u8 size_class_of(__u32 payload)
{
	__u8 class = 0;

	while (class < SIZE_CLASSES - 1 && payload > (class ? 32u << class : 0))
		class ++;
	return class;
}

/* as in the output, smallest and largest payload; the open class has no largest */
static inline const char *size_class_name(unsigned int class)
{
	static const char *const names[SIZE_CLASSES] = {"0",	     "1-64",	  "65-128",
							"129-256",   "257-512",	  "513-1024",
							"1025-2048", "2049-4096", "4097-"};

	return class < SIZE_CLASSES ? names[class] : "?";
}

#endif /* RXESTAT_SIZE_CLASS_H */
