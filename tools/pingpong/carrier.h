/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PINGPONG_CARRIER_H
#define PINGPONG_CARRIER_H

#include <stdbool.h>

#include "settings.h"

/*
 * What carries messages between the ends. Each function says on stderr what
 * failed.
 *
 * send() returns once `data` may be changed; receive() once a message of
 * settings->size is in the buffer that it returns, or NULL.
 */
struct carrier {
	bool (*open)(const struct settings *settings, int peer);
	unsigned char *(*outgoing)(void);
	bool (*send)(void);
	unsigned char *(*receive)(void);
	uint32_t (*path_mtu)(void); /* bytes of payload in a packet; 0: not this layer's */
	void (*close)(void);
};

extern const struct carrier tcp_carrier, verbs_carrier;

/* Say what failed, with errno if it is set; returns false. */
bool failed(const char *what);

#endif /* PINGPONG_CARRIER_H */
