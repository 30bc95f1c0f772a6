// SPDX-License-Identifier: GPL-2.0-only
#include "exporter.h"

#include "msg.h"

#ifdef HAVE_MICROHTTPD

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host_name.h"
#include "openmetrics.h"

/* for a request and its answer, however slowly its bytes come */
#ifndef PATIENCE_S
#define PATIENCE_S 10u
#endif
#define REQUEST_BYTES ((size_t)16 << 10)

#define PAGE	      "rxestat: the metrics are at /metrics\n"
#define NOT_OUR_NAME \
	"rxestat: ask by this machine's address or host name, or by that in --openmetrics\n"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status, char *text,
			      size_t size, enum MHD_ResponseMemoryMode mode, const char *type)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	/* so the time of a connection is that of a request */
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned int status,
				   const char *text)
{
	return answer(connection, status, (char *)text, strlen(text), MHD_RESPMEM_PERSISTENT,
		      "text/plain; charset=utf-8");
}

static enum MHD_Result answer_metrics(struct exporter *e, struct MHD_Connection *connection)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool openmetrics = accept && strstr(accept, "application/openmetrics-text");
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return MHD_NO;
	e->status = e->print(e->context, out, openmetrics);
	if (fclose(out) || e->status) {
		free(text);
		return answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "failed\n");
	}
	return answer(connection, MHD_HTTP_OK, text, size, MHD_RESPMEM_MUST_FREE,
		      metrics_media_type(openmetrics));
}

/* a page elsewhere can have its name lead here, and its browser ask us: DNS rebinding */
static bool is_for_us(const struct exporter *e, struct MHD_Connection *connection)
{
	const char *const names[] = {e->own_name, e->given_name};
	const char *host =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	/* browsers always say whom they ask */
	return !host || host_is_ours(host, names, sizeof(names) / sizeof(names[0]));
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **request)
{
	(void)version;
	(void)upload;
	(void)upload_size;
	(void)request;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
	if (!is_for_us(context, connection))
		return answer_text(connection, MHD_HTTP_FORBIDDEN, NOT_OUR_NAME);
	if (!strcmp(url, "/metrics"))
		return answer_metrics(context, connection);
	return !strcmp(url, "/") ? answer_text(connection, MHD_HTTP_OK, PAGE)
				 : answer_text(connection, MHD_HTTP_NOT_FOUND, PAGE);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **kept,
			  enum MHD_ConnectionNotificationCode code)
{
	struct exporter *e = context;
	struct exporter_connection *one = *kept;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (one)
			one->fd = -1;
		return;
	}
	for (one = e->connections; one < e->connections + EXPORTER_CONNECTIONS; one++) {
		if (one->fd >= 0)
			continue;
		one->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				  ->connect_fd;
		one->since_ns = now_ns();
		*kept = one;
		return;
	}
}

/* libmicrohttpd counts from the last byte, which a client may send every few seconds */
static void end_slow_connections(struct exporter *e)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < EXPORTER_CONNECTIONS; i++) {
		const struct exporter_connection *one = &e->connections[i];

		/* it is closed where its end is read */
		if (one->fd >= 0 && now - one->since_ns > PATIENCE_S * 1000000000ull)
			shutdown(one->fd, SHUT_RDWR);
	}
}

/* "9491", ":9491", "10.0.0.1:9491", "[::1]:9491"; the host is left in `host` */
static struct addrinfo *resolve(const char *where, char *host, size_t size)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(where, ':'), *port = colon ? colon + 1 : where;
	struct addrinfo *found = NULL;

	snprintf(host, size, "127.0.0.1");
	if (colon && colon != where) {
		bool bracketed = where[0] == '[' && colon[-1] == ']';
		int length = colon - where - 2 * bracketed;

		if (length < 1 || length >= (int)size)
			return NULL;
		snprintf(host, size, "%.*s", length, where + bracketed);
	}
	return !*port || getaddrinfo(host, port, &hints, &found) ? NULL : found;
}

int exporter_open(struct exporter *e, const char *where, exporter_print print, void *context)
{
	struct addrinfo *address;
	unsigned int flags = MHD_USE_EPOLL;

	*e = (struct exporter){.fd = -1, .print = print, .context = context};
	for (size_t i = 0; i < EXPORTER_CONNECTIONS; i++)
		e->connections[i].fd = -1;
	if (gethostname(e->own_name, sizeof(e->own_name) - 1))
		e->own_name[0] = '\0';
	address = resolve(where, e->given_name, sizeof(e->given_name));
	if (!address)
		return msg_error(EXIT_USAGE, "it is no address and port",
				 "give a port, or ADDRESS:PORT: --openmetrics :9491",
				 "cannot listen at '%s'", where);
	if (address->ai_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	e->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, e, MHD_OPTION_SOCK_ADDR,
				     address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
				     (unsigned int)EXPORTER_CONNECTIONS,
				     MHD_OPTION_CONNECTION_TIMEOUT, PATIENCE_S,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, e,
				     MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
	freeaddrinfo(address);
	if (!e->daemon)
		return msg_error(EXIT_RUN,
				 "another program listens there, or it is no address of "
				 "this machine",
				 "choose another port: --openmetrics :9492",
				 "cannot listen at '%s': %s", where, strerror(errno));
	e->fd = MHD_get_daemon_info(e->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	return 0;
}

int exporter_serve(struct exporter *e)
{
	end_slow_connections(e);
	MHD_run(e->daemon);
	return e->status;
}

void exporter_close(struct exporter *e)
{
	if (e->daemon)
		MHD_stop_daemon(e->daemon);
	e->daemon = NULL;
}

#else

int exporter_open(struct exporter *e, const char *where, exporter_print print, void *context)
{
	(void)where;
	*e = (struct exporter){.fd = -1, .print = print, .context = context};
	return msg_error(EXIT_MISSING, "libmicrohttpd was not there when rxestat was built",
			 "install libmicrohttpd-dev, and build it again: make probes",
			 "this rxestat cannot serve metrics");
}

int exporter_serve(struct exporter *e)
{
	return e->status;
}

void exporter_close(struct exporter *e)
{
	(void)e;
}

#endif /* HAVE_MICROHTTPD */
