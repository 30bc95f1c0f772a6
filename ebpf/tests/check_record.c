// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's record header and ours agree, field by field. Both name the same structs, so each
 * is compiled alone (record_layout.c, twice) into a table; this compares the tables.
 */
#include <string.h>

#include "check.h"
#include "record_layout.h"

static void check_field(const struct record_field *theirs, const struct record_field *ours)
{
	CHECK(!strcmp(theirs->name, ours->name) && theirs->offset == ours->offset &&
		      theirs->size == ours->size,
	      "driver: %s at %zu, %zu bytes; ebpf: %s at %zu, %zu bytes", theirs->name,
	      theirs->offset, theirs->size, ours->name, ours->offset, ours->size);
}

int main(void)
{
	size_t n = 0;

	for (; record_layout_driver[n].name && record_layout_ebpf[n].name; n++)
		check_field(&record_layout_driver[n], &record_layout_ebpf[n]);
	CHECK(!record_layout_driver[n].name && !record_layout_ebpf[n].name && n > 20,
	      "%zu fields in both", n);
	return check_end("record");
}
