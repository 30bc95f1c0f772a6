// SPDX-License-Identifier: GPL-2.0-only
/* Names in the header Host of requests. */
#include "host_name.h"

#include <string.h>

#include "check.h"

static const char *const NAMES[] = {"node1", "node1.example.org", ""};

static bool ours(const char *host)
{
	return host_is_ours(host, NAMES, sizeof(NAMES) / sizeof(NAMES[0]));
}

int main(void)
{
	static const char *const OURS[] = {
		"127.0.0.1",	"127.0.0.1:9491", "10.0.0.7:",
		"[::1]",	"[fe80::1]:9491", "localhost",
		"LOCALHOST:80", "node1",	  "Node1.Example.Org:9491"};
	static const char *const THEIRS[] = {
		"",	      ":",	":9491",	  "[",		 "[]",
		"[::1",	      "[::1]x", "[node1]",	  "::1",	 "evil",
		"node1.evil", "xnode1", "127.0.0.1.evil", "127.0.0.1:x", "node1:1:1",
		"127.1"};
	char longest[5000];

	for (size_t i = 0; i < sizeof(OURS) / sizeof(OURS[0]); i++)
		CHECK(ours(OURS[i]), "%s", OURS[i]);
	for (size_t i = 0; i < sizeof(THEIRS) / sizeof(THEIRS[0]); i++)
		CHECK(!ours(THEIRS[i]), "%s", THEIRS[i]);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK(!ours(longest), "a long name");
	return check_end("host");
}
