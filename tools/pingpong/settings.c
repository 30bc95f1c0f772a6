// SPDX-License-Identifier: GPL-2.0-or-later
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define USAGE 2

static const char HELP[] =
	"usage: pingpong [OPTIONS]         serve one client, then end\n"
	"       pingpong [OPTIONS] HOST    be the client, and print the result as "
	"JSON\n"
	"\n"
	"Send messages to and fro, a given number of them, over TCP or a verbs "
	"device's reliable\n"
	"connection, with the same program and the same way of waiting.\n"
	"\n"
	"  -p, --port PORT       TCP port (default 18600)\n"
	"  -d, --device NAME     both ends: SEND messages over this verbs device\n"
	"  -x, --gid-index N     both ends: its GID (default 0)\n"
	"  -i, --ib-port N       both ends: its port (default 1)\n"
	"  -u, --timeout N       both ends: ACK timeout, 4.096 us times 2^N "
	"(default 14)\n"
	"  -m, --mtu BYTES       both ends: path MTU (default: the port's)\n"
	"  -n, --count N         client: messages to send (default 1000)\n"
	"  -s, --size BYTES      client: of a message (default 64)\n"
	"  -S, --stream          client: one way, over TCP; the server answers at "
	"the end\n"
	"  -P, --poll            client: both ends spin; otherwise they sleep "
	"until a message comes\n"
	"  -V, --version\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0 success, 1 the transfer failed, 2 usage.\n";

static bool number(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	unsigned long long parsed;
	char *end;

	errno = 0;
	if (!isdigit((unsigned char)*text))
		return false;
	parsed = strtoull(text, &end, 10);
	if (errno || *end || parsed < min || parsed > max)
		return false;
	*value = parsed;
	return true;
}

static int refuse(const char *option, const char *text)
{
	fprintf(stderr, "pingpong: %s cannot be %s\n  what to do: see pingpong --help\n", option,
		text);
	return USAGE + 1;
}

int settings_parse(struct settings *settings, int argc, char **argv)
{
	static const struct option LONG[] = {
		{"port", required_argument, NULL, 'p'},
		{"device", required_argument, NULL, 'd'},
		{"gid-index", required_argument, NULL, 'x'},
		{"ib-port", required_argument, NULL, 'i'},
		{"timeout", required_argument, NULL, 'u'},
		{"mtu", required_argument, NULL, 'm'},
		{"count", required_argument, NULL, 'n'},
		{"size", required_argument, NULL, 's'},
		{"stream", no_argument, NULL, 'S'},
		{"poll", no_argument, NULL, 'P'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	uint32_t port;
	int option;

	*settings = (struct settings){
		.port = "18600",
		.ib_port = 1,
		.ack_timeout = 14,
		.size = 64,
		.count = 1000,
	};
	while ((option = getopt_long(argc, argv, "p:d:x:i:u:m:n:s:SPVh", LONG, NULL)) != -1) {
		switch (option) {
		case 'p':
			if (!number(optarg, 1, 65535, &port))
				return refuse("--port", optarg);
			settings->port = optarg;
			break;
		case 'd':
			settings->device = optarg;
			break;
		case 'x':
			if (!number(optarg, 0, 255, &settings->gid_index))
				return refuse("--gid-index", optarg);
			break;
		case 'i':
			if (!number(optarg, 1, 255, &settings->ib_port))
				return refuse("--ib-port", optarg);
			break;
		case 'u':
			if (!number(optarg, 0, 31, &settings->ack_timeout))
				return refuse("--timeout", optarg);
			break;
		case 'm':
			if (!number(optarg, 256, 4096, &settings->path_mtu) ||
			    settings->path_mtu & (settings->path_mtu - 1))
				return refuse("--mtu", optarg);
			break;
		case 'n':
			if (!number(optarg, 1, MAX_COUNT, &settings->count))
				return refuse("--count", optarg);
			break;
		case 's':
			if (!number(optarg, 1, MAX_BYTES, &settings->size))
				return refuse("--size", optarg);
			break;
		case 'S':
			settings->stream = true;
			break;
		case 'P':
			settings->poll = true;
			break;
		case 'V':
			puts("pingpong " BENCHMARK_VERSION);
			return 1;
		case 'h':
			fputs(HELP, stdout);
			return 1;
		default:
			fputs("  what to do: see pingpong --help\n", stderr);
			return USAGE + 1;
		}
	}
	if (argc - optind > 1)
		return refuse("HOST", "more than one");
	settings->host = argv[optind];
	if (settings->stream && settings->device)
		return refuse("--stream", "over a verbs device (ib_send_bw is)");
	return 0;
}
