// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE /* accept4 */
#include "tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "carrier.h"

static int connection;
static bool polls;
static size_t length;
static unsigned char *sent, *received;

/* IPv6 first, whose socket takes clients by IPv4, too; a kernel may lack it. */
static int listening_on(const char *port)
{
	static const int FAMILIES[] = {AF_INET6, AF_INET};
	int on = 1, off = 0;

	for (size_t i = 0; i < 2; i++) {
		struct addrinfo hints = {
			.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
			.ai_family = FAMILIES[i],
			.ai_socktype = SOCK_STREAM,
		};
		struct addrinfo *address;
		int fd;

		if (getaddrinfo(NULL, port, &hints, &address))
			continue;
		fd = socket(FAMILIES[i], SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (fd >= 0 && !bind(fd, address->ai_addr, address->ai_addrlen) && !listen(fd, 1)) {
			freeaddrinfo(address);
			return fd;
		}
		freeaddrinfo(address);
		if (fd >= 0)
			close(fd);
	}
	failed("cannot listen on the port");
	return -1;
}

static int ready(int fd)
{
	int on = 1;

	/* a small message must not wait for the answer to the one before */
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int tcp_connect(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list, *each;
	int fd = -1, error;

	error = getaddrinfo(host, port, &hints, &list);
	if (error) {
		fprintf(stderr, "pingpong: %s: %s\n", host, gai_strerror(error));
		return -1;
	}
	for (each = list; each && fd < 0; each = each->ai_next) {
		fd = socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
		if (fd >= 0 && connect(fd, each->ai_addr, each->ai_addrlen)) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		failed("cannot connect to the server");
	return ready(fd);
}

int tcp_accept(const char *port)
{
	int listening = listening_on(port), fd;

	if (listening < 0)
		return -1;
	do
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		failed("cannot accept a client");
	close(listening);
	return ready(fd);
}

static bool again(void)
{
	return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

bool tcp_write(int peer, const void *data, size_t size, bool poll)
{
	const char *next = data;

	while (size) {
		ssize_t done = send(peer, next, size, MSG_NOSIGNAL | (poll ? MSG_DONTWAIT : 0));

		if (done < 0) {
			if (again())
				continue;
			return failed("cannot send");
		}
		next += done;
		size -= done;
	}
	return true;
}

bool tcp_read(int peer, void *data, size_t size, bool poll)
{
	char *next = data;

	while (size) {
		ssize_t done = recv(peer, next, size, poll ? MSG_DONTWAIT : 0);

		if (!done) {
			errno = 0;
			return failed("the other end closed the connection");
		}
		if (done < 0) {
			if (again())
				continue;
			return failed("cannot receive");
		}
		next += done;
		size -= done;
	}
	return true;
}

static bool tcp_open(const struct settings *settings, int peer)
{
	connection = peer;
	polls = settings->poll;
	length = settings->size;
	sent = calloc(1, length);
	received = calloc(1, length);
	return (sent && received) || failed("no memory for messages");
}

static unsigned char *tcp_outgoing(void)
{
	return sent;
}

static bool tcp_send(void)
{
	return tcp_write(connection, sent, length, polls);
}

static unsigned char *tcp_receive(void)
{
	return tcp_read(connection, received, length, polls) ? received : NULL;
}

static uint32_t tcp_path_mtu(void)
{
	return 0;
}

static void tcp_close(void)
{
	free(sent);
	free(received);
}

const struct carrier tcp_carrier = {
	.open = tcp_open,
	.outgoing = tcp_outgoing,
	.send = tcp_send,
	.receive = tcp_receive,
	.path_mtu = tcp_path_mtu,
	.close = tcp_close,
};
