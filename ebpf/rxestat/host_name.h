/* SPDX-License-Identifier: GPL-2.0-only */
/* Which names in a request's header Host are this machine's. */
#ifndef HOST_NAME_H
#define HOST_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Say whether `host`, "NAME", "ADDRESS" or "[ADDRESS6]" with or without ":PORT", is an IP address,
 * localhost or one of `count` names. A page of another name that leads here is a stranger's.
 */
bool host_is_ours(const char *host, const char *const *names, size_t count);

#endif /* HOST_NAME_H */
