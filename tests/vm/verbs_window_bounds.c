// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a memory window of type 2 allows: its own part of a memory region, and no other region.
 *
 *   verbs_window_bounds DEVICE PEER
 *
 * Both ends are in this process, over RoCE v2. Prints a line for each rule that does not hold.
 */
#include "verbs_ends.h"

/* the window: the second quarter of the memory */
#define LENGTH (MEMORY / 4)
#define START  ((uintptr_t)owner.memory + LENGTH)

static struct ibv_mw *mw;

static void expect(int holds, const char *rule)
{
	if (!holds)
		printf("not so: %s\n", rule);
}

static enum ibv_wc_status bind_to(struct ibv_mr *mr, uint64_t addr, uint64_t length, int access)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
	enum ibv_wc_status status;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = mr;
	wr.bind_mw.bind_info.addr = addr;
	wr.bind_mw.bind_info.length = length;
	wr.bind_mw.bind_info.mw_access_flags = access;
	status = run(&owner, &wr);
	if (status == IBV_WC_SUCCESS)
		mw->rkey = wr.bind_mw.rkey; /* the next binding names it */
	return status;
}

static void unbind(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey};

	CHECK(run(&owner, &wr) == IBV_WC_SUCCESS);
}

/* a failed request ends both queue pairs */
static void connect_again(void)
{
	disconnect_ends();
	connect_ends();
}

/* bind, let the peer make a request, unbind */
static enum ibv_wc_status request(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t length,
				  int zero_based)
{
	enum ibv_wc_status status;

	connect_again();
	CHECK(bind_to(owner.mr, START, LENGTH, ALL_ACCESS | zero_based) == IBV_WC_SUCCESS);
	status = peer_requests(opcode, addr, length, mw->rkey);
	connect_again();
	unbind();
	return status;
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t length;
	const char *name;
} REQUESTS[] = {{IBV_WR_RDMA_WRITE, 8, "a WRITE"},
		{IBV_WR_RDMA_WRITE, LENGTH, "a WRITE of several packets"},
		{IBV_WR_RDMA_READ, 8, "a READ"},
		{IBV_WR_RDMA_READ, LENGTH, "a READ of several packets"},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, "an atomic operation"}};

static void requests_reach_the_window_only(void)
{
	char rule[128];

	for (size_t i = 0; i < sizeof(REQUESTS) / sizeof(*REQUESTS); i++) {
		enum ibv_wr_opcode opcode = REQUESTS[i].opcode;
		uint32_t length = REQUESTS[i].length;

		for (int zero_based = 0; zero_based < 2; zero_based++) {
			uint64_t first = zero_based ? 0 : START;
			uint64_t last = first + LENGTH - length;
			const char *kind = zero_based ? "zero-based" : "ordinary";
			int flag = zero_based ? IBV_ACCESS_ZERO_BASED : 0;

#define RULE(status, what)                                                                    \
	do {                                                                                  \
		snprintf(rule, sizeof(rule), "%s " what " of an %s window", REQUESTS[i].name, \
			 kind);                                                               \
		expect(status, rule);                                                         \
	} while (0)
			RULE(request(opcode, first, length, flag) == IBV_WC_SUCCESS,
			     "reaches the begin");
			RULE(request(opcode, last, length, flag) == IBV_WC_SUCCESS,
			     "reaches the end");
			RULE(request(opcode, first - 8, length, flag) == IBV_WC_REM_ACCESS_ERR,
			     "does not begin before that");
			RULE(request(opcode, last + 8, length, flag) == IBV_WC_REM_ACCESS_ERR,
			     "does not end after that");
#undef RULE
		}
	}
}

static void refuse(struct ibv_mr *mr, uint64_t addr, uint64_t length, int access, const char *rule)
{
	int bound;

	connect_again();
	bound = bind_to(mr, addr, length, access) == IBV_WC_SUCCESS;
	expect(!bound, rule);
	if (bound)
		unbind();
}

static void windows_lie_within_a_region(void)
{
	static const int kinds[] = {0, IBV_ACCESS_ZERO_BASED};
	uint64_t region = (uintptr_t)owner.memory;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	for (int i = 0; i < 2; i++) {
		int access = IBV_ACCESS_REMOTE_READ | kinds[i];

		refuse(owner.mr, region - 8, 16, access,
		       "a window does not begin before its region");
		refuse(owner.mr, region + MEMORY - 8, 16, access,
		       "a window does not end after its region");
		refuse(owner.mr, region + 8, -8ULL, access, "a window does not wrap around");
	}

	CHECK(pd = ibv_alloc_pd(owner.context));
	CHECK(mr = ibv_reg_mr(pd, owner.memory, MEMORY, ACCESS));
	refuse(mr, START, LENGTH, IBV_ACCESS_REMOTE_READ,
	       "a window does not lie in a region of another protection domain");
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(pd));
}

static void a_region_with_windows_keeps_its_rights(void)
{
	struct ibv_pd *pd;
	int error;

	CHECK(pd = ibv_alloc_pd(owner.context));
	connect_again();
	CHECK(bind_to(owner.mr, START, LENGTH, ALL_ACCESS) == IBV_WC_SUCCESS);
	error = ibv_rereg_mr(owner.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_MW_BIND);
	if (error && errno == EOPNOTSUPP)
		return; /* Linux 6.1 changes no region */
	expect(error, "a region with a window keeps its access rights");
	expect(ibv_rereg_mr(owner.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
	       "a region with a window keeps its protection domain");
	unbind();
	expect(!ibv_rereg_mr(owner.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS),
	       "a region without windows gets other access rights");
	expect(bind_to(owner.mr, START, LENGTH, ALL_ACCESS) == IBV_WC_SUCCESS,
	       "a region gets windows after that");
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: verbs_window_bounds DEVICE PEER\n");
		return 2;
	}
	open_end(&owner, argv[1]);
	open_end(&peer, argv[2]);
	CHECK(mw = ibv_alloc_mw(owner.pd, IBV_MW_TYPE_2));
	connect_ends();
	windows_lie_within_a_region();
	requests_reach_the_window_only();
	a_region_with_windows_keeps_its_rights();
	printf("done\n");
	return 0;
}
