// SPDX-License-Identifier: GPL-2.0-only
/* The opcode table: consistent, and equal to the kernel's where its header is installed. */
#include <stdlib.h>
#include <string.h>

#include "bth.h"
#include "check.h"
#include "rxestat.h"

static void check_table(void)
{
	int named = 0;

	for (int op = 0; op < 256; op++) {
		const char *service = bth_service_name(op >> 5), *name = bth_name(op);

		if (!name) {
			CHECK(bth_class_of(op) == BTH_CLASS_OTHER, "0x%02x", op);
			continue;
		}
		named++;
		CHECK(!strncmp(name, service, strlen(service)), "%s is not of service %s", name,
		      service);
		CHECK(bth_class_of(op) != BTH_CLASS_OTHER, "%s", name);
	}
	CHECK(named > 80, "%d opcodes", named);
	CHECK(bth_class_of(0x04) == BTH_CLASS_SEND && bth_class_of(0x0a) == BTH_CLASS_WRITE &&
		      bth_class_of(0x11) == BTH_CLASS_ACKNOWLEDGE &&
		      bth_class_of(0x64) == BTH_CLASS_SEND,
	      "RC SEND_ONLY, RDMA_WRITE_ONLY, ACKNOWLEDGE, UD SEND_ONLY");
	CHECK(!strcmp(bth_class_name(BTH_CLASS_WRITE), "RDMA_WRITE") &&
		      !strcmp(bth_class_name(BTH_CLASS_OTHER), "OTHER") &&
		      !strcmp(bth_class_name(BTH_CLASSES), "OTHER"),
	      "names of classes");
	CHECK(bth_is_response(0x11) && bth_is_response(0x0e) && bth_is_response(0x12) &&
		      !bth_is_response(0x0c) && !bth_is_response(0x15) && !bth_is_response(0x81),
	      "responses");
	CHECK(bth_class_of(0x15) == BTH_CLASS_OTHER && bth_class_of(0xff) == BTH_CLASS_OTHER,
	      "reserved opcodes");
	CHECK(!strcmp(bth_service_name(7), "-") && !strcmp(bth_service_name(99), "-"),
	      "no service");
}

/* rxestat's keys have bits for the classes of every service; one number stays free */
static void check_classes_fit(void)
{
	bool seen[8][BTH_CLASSES] = {};
	int pairs = 1; /* BTH_CLASS_OTHER of every service is one */

	for (int op = 0; op < 256; op++) {
		bool *pair = &seen[op >> 5][bth_class_of(op)];

		pairs += bth_name(op) && !*pair;
		*pair |= bth_name(op) != NULL;
	}
	CHECK(pairs <= CLASS_IGNORED, "%d classes", pairs);
}

/* computed by hand from the headers' lengths in the specification */
static void check_overhead(void)
{
	static const struct {
		__u8 opcode, bytes;
	} known[] = {
		{0x00, 16}, /* RC_SEND_FIRST: BTH, ICRC */
		{0x05, 20}, /* RC_SEND_ONLY_WITH_IMMEDIATE */
		{0x17, 20}, /* RC_SEND_ONLY_WITH_INVALIDATE */
		{0x06, 32}, /* RC_RDMA_WRITE_FIRST: RETH */
		{0x07, 16}, /* RC_RDMA_WRITE_MIDDLE */
		{0x08, 16}, /* RC_RDMA_WRITE_LAST */
		{0x0b, 36}, /* RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE */
		{0x0c, 32}, /* RC_RDMA_READ_REQUEST */
		{0x0d, 20}, /* RC_RDMA_READ_RESPONSE_FIRST: AETH */
		{0x0e, 16}, /* RC_RDMA_READ_RESPONSE_MIDDLE */
		{0x11, 20}, /* RC_ACKNOWLEDGE */
		{0x12, 28}, /* RC_ATOMIC_ACKNOWLEDGE */
		{0x13, 44}, /* RC_COMPARE_SWAP */
		{0x26, 32}, /* UC_RDMA_WRITE_FIRST */
		{0x64, 24}, /* UD_SEND_ONLY: DETH */
		{0x65, 28}, /* UD_SEND_ONLY_WITH_IMMEDIATE */
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CHECK(bth_overhead(known[i].opcode) == known[i].bytes, "0x%02x: %u, not %u",
		      known[i].opcode, bth_overhead(known[i].opcode), known[i].bytes);
}

static int chosen_count(const char *name, bool chosen[256])
{
	int n = 0;

	memset(chosen, 0, 256);
	if (!bth_choose(name, chosen))
		return -1;
	for (int i = 0; i < 256; i++)
		n += chosen[i];
	return n;
}

static void check_choose(void)
{
	bool chosen[256];

	CHECK(chosen_count("RC_RDMA_WRITE_ONLY", chosen) == 1 && chosen[0x0a], "an opcode");
	CHECK(chosen_count("rc_rdma_write_only", chosen) == 1 && chosen[0x0a], "in small letters");
	CHECK(chosen_count("UC_RDMA_WRITE", chosen) == 6 && chosen[0x26] && !chosen[0x06],
	      "a class of one service");
	CHECK(chosen_count("RDMA_WRITE", chosen) == 24 && chosen[0x06] && chosen[0xab],
	      "a class of all services");
	CHECK(chosen_count("CNP", chosen) == 1 && chosen[0x81], "CNP");
	CHECK(chosen_count("RC_NO_SUCH", chosen) == -1 && chosen_count("", chosen) == -1,
	      "no name");
}

/* a part of an opcode, as include/rdma/ib_pack.h defines them before it adds two */
struct part {
	char name[64];
	unsigned int value;
};

static unsigned int part_value(const struct part *parts, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(parts[i].name, name))
			return parts[i].value;
	}
	return ~0u;
}

static void check_opcode(const char *name, unsigned int value)
{
	bool match = value < 256 && bth_name(value) && !strcmp(bth_name(value), name);

	CHECK(match, "the kernel has %s = 0x%02x", name, value);
}

static void check_against_kernel(const char *path)
{
	struct part parts[64], part;
	char line[256], service[16], operation[64], name[96];
	size_t nparts = 0, found = 0;
	FILE *f = fopen(path, "r");

	CHECK(f, "cannot open %s", path);
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " IB_OPCODE_%63[A-Z_] = 0x%x", part.name, &part.value) == 2) {
			if (nparts < sizeof(parts) / sizeof(parts[0]))
				parts[nparts++] = part;
		} else if (sscanf(line, " IB_OPCODE(%15[A-Z], %63[A-Z_])", service, operation) ==
			   2) {
			snprintf(name, sizeof(name), "%s_%s", service, operation);
			check_opcode(name, part_value(parts, nparts, service) +
						   part_value(parts, nparts, operation));
			found++;
		}
	}
	if (f)
		fclose(f);
	CHECK(found > 50, "only %zu opcodes in %s", found, path);
}

int main(int argc, char **argv)
{
	check_table();
	check_overhead();
	check_classes_fit();
	check_choose();
	if (argc > 1)
		check_against_kernel(argv[1]);
	else
		printf("bth: no kernel headers here, not compared with ib_pack.h\n");
	return check_end("bth");
}
