// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rxe_mw_bounds DEVICE: a memory window lies within its memory region, and a
 * peer that was given the window reaches nothing outside of it.
 */
#include "rxe_verbs.h"

#define ACCESS	(RXE_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

/* the window: the second quarter of the region */
#define LENGTH	PAGE
#define QUARTER	(LENGTH / 4)

static unsigned char memory[LENGTH];
static struct ibv_mr *mr;
static int failed;

static void expect(int holds, const char *rule)
{
	if (!holds)
		printf("not so: %s\n", rule);
	failed |= !holds;
}

static enum ibv_wc_status bind_window(struct rxe_pair pair, struct ibv_mw *mw, int64_t offset,
				      uint64_t length)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {
				.mr = mr,
				.addr = (uintptr_t)memory + offset,
				.length = length,
				.mw_access_flags = RXE_REMOTE,
			},
		},
	};
	enum ibv_wc_status status = rxe_run(pair.owner, &wr);

	mw->rkey = wr.bind_mw.rkey;
	return status;
}

/* is such a window refused? The window ends before its QP. */
static int is_refused(int64_t offset, uint64_t length)
{
	struct rxe_pair pair = rxe_make_pair();
	enum ibv_wc_status status;
	struct ibv_mw *mw;

	rxe_need(mw = ibv_alloc_mw(rxe_pd, IBV_MW_TYPE_2));
	status = bind_window(pair, mw, offset, length);
	rxe_need(!ibv_dealloc_mw(mw));
	rxe_end_pair(pair);
	return status != IBV_WC_SUCCESS;
}

/* what becomes of a request of 8 bytes through the window */
static enum ibv_wc_status request(enum ibv_wr_opcode opcode, int64_t offset)
{
	struct rxe_pair pair = rxe_make_pair();
	enum ibv_wc_status status;
	struct ibv_mw *mw;

	rxe_need(mw = ibv_alloc_mw(rxe_pd, IBV_MW_TYPE_2));
	rxe_need(bind_window(pair, mw, QUARTER, QUARTER) == IBV_WC_SUCCESS);
	status = rxe_request(pair, opcode, (uintptr_t)memory + offset, 8, mw->rkey);
	rxe_need(!ibv_dealloc_mw(mw));
	rxe_end_pair(pair);
	return status;
}

int main(int argc, char **argv)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	int i;

	rxe_open(argv[argc - 1]);
	rxe_need(mr = ibv_reg_mr(rxe_pd, memory, LENGTH, ACCESS));

	for (i = 0; i < 2; i++) {
		expect(request(opcodes[i], QUARTER) == IBV_WC_SUCCESS,
		       "a peer reaches the begin of the window");
		expect(request(opcodes[i], 2 * QUARTER - 8) == IBV_WC_SUCCESS,
		       "a peer reaches the end of the window");
		expect(request(opcodes[i], QUARTER - 8) == IBV_WC_REM_ACCESS_ERR,
		       "a peer does not reach what is before the window");
		expect(request(opcodes[i], 2 * QUARTER) == IBV_WC_REM_ACCESS_ERR,
		       "a peer does not reach what is behind the window");
	}
	expect(!is_refused(0, LENGTH), "a window is as large as its region");
	expect(is_refused(-8, 16), "a window does not begin before its region");
	expect(is_refused(LENGTH - 8, 16), "a window does not end after its region");
	expect(is_refused(8, -8ULL), "a window does not wrap around");
	return failed;
}
