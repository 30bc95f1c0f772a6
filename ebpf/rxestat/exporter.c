// SPDX-License-Identifier: GPL-2.0-only
#include "exporter.h"

#include "msg.h"

#ifdef HAVE_MICROHTTPD

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "openmetrics.h"

/* a scraper needs one; more would only hold our memory */
#define MAX_CONNECTIONS 16
#define PATIENCE_S	10u
#define REQUEST_BYTES	((size_t)16 << 10)

#define PAGE		"rxestat: the metrics are at /metrics\n"

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status, char *text,
			      size_t size, enum MHD_ResponseMemoryMode mode, const char *type)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
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
	if (!strcmp(url, "/metrics"))
		return answer_metrics(context, connection);
	return !strcmp(url, "/") ? answer_text(connection, MHD_HTTP_OK, PAGE)
				 : answer_text(connection, MHD_HTTP_NOT_FOUND, PAGE);
}

/* "9491", ":9491", "10.0.0.1:9491", "[::1]:9491" */
static struct addrinfo *resolve(const char *where)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(where, ':'), *port = colon ? colon + 1 : where;
	struct addrinfo *found = NULL;
	char host[256] = "127.0.0.1";

	if (colon && colon != where) {
		bool bracketed = where[0] == '[' && colon[-1] == ']';
		int length = colon - where - 2 * bracketed;

		if (length < 1 || length >= (int)sizeof(host))
			return NULL;
		snprintf(host, sizeof(host), "%.*s", length, where + bracketed);
	}
	return !*port || getaddrinfo(host, port, &hints, &found) ? NULL : found;
}

int exporter_open(struct exporter *e, const char *where, exporter_print print, void *context)
{
	struct addrinfo *address = resolve(where);
	unsigned int flags = MHD_USE_EPOLL;

	*e = (struct exporter){.fd = -1, .print = print, .context = context};
	if (!address)
		return msg_error(EXIT_USAGE, "it is no address and port",
				 "give a port, or ADDRESS:PORT: --openmetrics :9491",
				 "cannot listen at '%s'", where);
	if (address->ai_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	e->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, e, MHD_OPTION_SOCK_ADDR,
				     address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
				     (unsigned int)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				     PATIENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES,
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
