// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A memory region with on-demand paging, whatever its iova, is where its owner registered it.
 *
 *   verbs_odp DEVICE PEER
 *
 * Both ends are in this process, over RoCE v2. Prints a line for each rule that does not hold.
 */
#include <sys/mman.h>

#include "verbs_ends.h"

#define PAGE   4096
#define PAGES  4
#define BEFORE 256 /* in the region's first page, not in the region */
#define LENGTH (2 * PAGE)
#define DATA   64

/* what a provider calls; that of rxe offers it to nobody, but the kernel does */
int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *list, uint32_t number);

static unsigned char *memory;

static void expect(int holds, const char *rule, uint64_t shift)
{
	if (!holds)
		printf("not so with iova = address + %#lx: %s\n", (unsigned long)shift, rule);
}

static enum ibv_wc_status request(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t length,
				  uint32_t rkey)
{
	enum ibv_wc_status status;

	connect_ends();
	status = peer_requests(opcode, addr, length, rkey);
	disconnect_ends();
	return status;
}

static int all(const unsigned char *bytes, size_t length, int value)
{
	while (length--)
		if (*bytes++ != value)
			return 0;
	return 1;
}

static int advise(const struct ibv_mr *mr, uint64_t addr, uint32_t length, int flags)
{
	struct ibv_sge sge = {addr, length, mr->lkey};

	return ibv_cmd_advise_mr(owner.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flags, &sge, 1);
}

static void region_with(uint64_t shift)
{
	unsigned char *start = memory + BEFORE, *middle = memory + PAGE - DATA / 2;
	uint64_t iova = (uintptr_t)start + shift;
	uint64_t at = (uintptr_t)middle + shift, counter = iova + PAGE;
	unsigned char sent[DATA];
	struct ibv_mr *mr;
	uint64_t value;

	memset(memory, 0, PAGES * PAGE);
	CHECK(mr = ibv_reg_mr_iova(owner.pd, start, LENGTH, iova, ACCESS | IBV_ACCESS_ON_DEMAND));

	for (int i = 0; i < DATA; i++)
		peer.memory[i] = sent[i] = i + 1;
	expect(request(IBV_WR_RDMA_WRITE, at, DATA, mr->rkey) == IBV_WC_SUCCESS,
	       "a WRITE reaches it", shift);
	expect(!memcmp(middle, sent, DATA), "a WRITE across pages writes what was sent", shift);
	expect(all(memory, PAGE - DATA / 2, 0) && all(middle + DATA, PAGE, 0),
	       "a WRITE writes nothing else", shift);

	memcpy(middle, sent, DATA);
	memset(peer.memory, 0, DATA);
	expect(request(IBV_WR_RDMA_READ, at, DATA, mr->rkey) == IBV_WC_SUCCESS,
	       "a READ reaches it", shift);
	expect(!memcmp(peer.memory, sent, DATA), "a READ across pages reads what is there", shift);

	expect(request(IBV_WR_ATOMIC_FETCH_AND_ADD, counter, 8, mr->rkey) == IBV_WC_SUCCESS,
	       "an atomic operation reaches it", shift);
	memcpy(&value, start + PAGE, sizeof(value));
	expect(value == 1, "an atomic operation adds there", shift);

	expect(request(IBV_WR_RDMA_WRITE, iova - 8, 16, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	       "a WRITE does not begin before it", shift);
	expect(request(IBV_WR_RDMA_WRITE, iova + LENGTH - 8, 16, mr->rkey) ==
		       IBV_WC_REM_ACCESS_ERR,
	       "a WRITE does not end after it", shift);

	for (int flags = 0; flags <= IBV_ADVISE_MR_FLAG_FLUSH; flags++) {
		expect(!advise(mr, iova, LENGTH, flags), "all of it is prefetched", shift);
		expect(advise(mr, iova + PAGE, LENGTH, flags) == EINVAL,
		       "no more than it is prefetched", shift);
	}
	CHECK(!ibv_dereg_mr(mr));
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: verbs_odp DEVICE PEER\n");
		return 2;
	}
	open_end(&owner, argv[1]);
	open_end(&peer, argv[2]);
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	CHECK(memory != MAP_FAILED);
	for (int flags = 0; flags <= IBV_ADVISE_MR_FLAG_FLUSH; flags++)
		expect(advise(owner.mr, (uintptr_t)owner.memory, 64, flags) == EINVAL,
		       "an ordinary region is not prefetched", 0);
	region_with(0);
	region_with(1UL << 30);
	region_with(0x80000000000);
	region_with(-(uint64_t)(uintptr_t)memory);
	printf("done\n");
	return 0;
}
