// SPDX-License-Identifier: GPL-2.0-or-later
/* The same ping-pong over TCP and verbs: a count of messages, and one way of
 * waiting. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "carrier.h"
#include "tcp.h"

#define MAGIC 0x50504e47u

/* What the client asks the server for; big-endian. */
struct request {
	uint32_t magic, size, count;
	uint8_t is_verbs, is_stream, polls, reserved;
};

bool failed(const char *what)
{
	fprintf(stderr, "pingpong: %s%s%s\n", what, errno ? ": " : "",
		errno ? strerror(errno) : "");
	return false;
}

static bool ask(int peer, const struct settings *settings)
{
	struct request request = {
		.magic = htobe32(MAGIC),
		.size = htobe32(settings->size),
		.count = htobe32(settings->count),
		.is_verbs = !!settings->device,
		.is_stream = settings->stream,
		.polls = settings->poll,
	};

	return tcp_write(peer, &request, sizeof(request), false);
}

static bool answer(int peer, struct settings *settings)
{
	struct request request;

	if (!tcp_read(peer, &request, sizeof(request), false))
		return false;
	errno = 0;
	settings->size = be32toh(request.size);
	settings->count = be32toh(request.count);
	settings->stream = request.is_stream;
	settings->poll = request.polls;
	if (be32toh(request.magic) != MAGIC || !settings->size || settings->size > MAX_BYTES ||
	    !settings->count || settings->count > MAX_COUNT)
		return failed("the client is no pingpong of this version");
	if (request.is_verbs != !!settings->device)
		return failed("one end has --device and the other has not");
	return true;
}

static bool right(const unsigned char *message, uint32_t number)
{
	errno = 0;
	return message && (*message == (unsigned char)number || failed("a message is corrupt"));
}

static bool send_one(const struct carrier *carrier, uint32_t number)
{
	*carrier->outgoing() = (unsigned char)number;
	return carrier->send();
}

static bool client(const struct carrier *carrier, const struct settings *settings)
{
	for (uint32_t number = 0; number < settings->count; number++) {
		if (!send_one(carrier, number))
			return false;
		if ((!settings->stream || number == settings->count - 1) &&
		    !right(carrier->receive(), number))
			return false;
	}
	return true;
}

static bool server(const struct carrier *carrier, const struct settings *settings)
{
	for (uint32_t number = 0; number < settings->count; number++) {
		if (!right(carrier->receive(), number))
			return false;
		if ((!settings->stream || number == settings->count - 1) &&
		    !send_one(carrier, number))
			return false;
	}
	return true;
}

/* Neither end goes before the client has the last answer. */
static bool parted(int peer, bool is_client)
{
	unsigned char is_done = 1;

	return is_client ? tcp_write(peer, &is_done, sizeof(is_done), false)
			 : tcp_read(peer, &is_done, sizeof(is_done), false);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void report(const struct settings *settings, uint32_t path_mtu, uint64_t took_ns)
{
	uint64_t answers = settings->stream ? 1 : settings->count;

	printf("{\"schema\": \"rocelab.pingpong/1\", \"carrier\": \"%s\", "
	       "\"operation\": \"%s\", "
	       "\"wait\": \"%s\", \"size\": %u, \"sent\": %u, \"received\": %llu, "
	       "\"path_mtu\": %u, \"elapsed_ns\": %llu}\n",
	       settings->device ? "verbs" : "tcp", settings->stream ? "stream" : "pingpong",
	       settings->poll ? "poll" : "sleep", settings->size, settings->count,
	       (unsigned long long)answers, path_mtu, (unsigned long long)took_ns);
}

int main(int argc, char **argv)
{
	struct settings settings;
	int status = settings_parse(&settings, argc, argv), peer;
	const struct carrier *carrier = settings.device ? &verbs_carrier : &tcp_carrier;
	bool is_ok = false;

	if (status)
		return status - 1;
	peer = settings.host ? tcp_connect(settings.host, settings.port)
			     : tcp_accept(settings.port);
	if (peer < 0)
		return 1;
	if (settings.host ? ask(peer, &settings) : answer(peer, &settings)) {
		if (carrier->open(&settings, peer)) {
			uint64_t began_ns = now_ns(), took_ns;

			is_ok = settings.host ? client(carrier, &settings)
					      : server(carrier, &settings);
			took_ns = now_ns() - began_ns;
			is_ok = is_ok && parted(peer, settings.host);
			if (is_ok && settings.host)
				report(&settings, carrier->path_mtu(), took_ns);
		}
		carrier->close();
	}
	close(peer);
	return !is_ok;
}
