// SPDX-License-Identifier: GPL-2.0-only
#include "host_name.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* RFC 1035, with the end */
#define NAME_BYTES 256

static bool is_port(const char *text)
{
	return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

static bool is_address(int family, const char *text)
{
	unsigned char binary[sizeof(struct in6_addr)];

	return inet_pton(family, text, binary) == 1;
}

bool host_is_ours(const char *host, const char *const *names, size_t count)
{
	bool bracketed = *host == '[';
	size_t length = strcspn(host + bracketed, bracketed ? "]" : ":");
	const char *rest = host + bracketed + length;
	char name[NAME_BYTES];

	if (!length || length >= sizeof(name) || (bracketed && *rest++ != ']') || !is_port(rest))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)length, host + bracketed);
	if (bracketed)
		return is_address(AF_INET6, name);
	if (is_address(AF_INET, name) || !strcasecmp(name, "localhost"))
		return true;
	for (size_t i = 0; i < count; i++) {
		if (*names[i] && !strcasecmp(name, names[i]))
			return true;
	}
	return false;
}
