/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PINGPONG_TCP_H
#define PINGPONG_TCP_H

#include <stdbool.h>
#include <stddef.h>

/* A connection to the other end; -1, with a message, if there is none. */
int tcp_connect(const char *host, const char *port);
int tcp_accept(const char *port);

/* All bytes or none; without sleeping if `poll`. */
bool tcp_write(int peer, const void *data, size_t size, bool poll);
bool tcp_read(int peer, void *data, size_t size, bool poll);

#endif /* PINGPONG_TCP_H */
