// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rxe_odp DEVICE: a memory region with on-demand paging is where it was
 * registered, whatever its iova, and no other region is prefetched.
 *
 * The first rule that does not hold ends the test: a driver that confuses iova
 * and address cannot be asked for more without harm.
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "rxe_verbs.h"

#define PAGES	4
#define LENGTH	(PAGES * PAGE)
#define ACCESS	(RXE_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)
#define DATA	64

static unsigned char *memory;

static void expect(int holds, const char *rule)
{
	if (holds)
		return;
	printf("not so: %s\n", rule);
	exit(1);
}

/* rxe's user-space driver has no ibv_advise_mr(); returns 0 or an errno */
static int prefetch(const struct ibv_mr *mr, uint64_t addr, uint32_t length, uint32_t flags)
{
	struct ib_uverbs_sge sge = { .addr = addr, .length = length, .lkey = mr->lkey };
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[4];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_ADVISE_MR,
			.num_attrs = 4,
			.driver_id = RDMA_DRIVER_RXE,
		},
		.attr = {
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_PD_HANDLE,
			  .data = rxe_pd->handle },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_ADVICE, .len = 8,
			  .data = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_FLAGS, .len = 4,
			  .data = flags },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_SGE_LIST, .len = sizeof(sge),
			  .data = (uintptr_t)&sge },
		},
	};
	int i;

	for (i = 0; i < 4; i++)
		cmd.attr[i].flags = UVERBS_ATTR_F_MANDATORY;
	return ioctl(rxe_context->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

/* a WRITE at an offset of the region changes these bytes and no others */
static int is_written(const struct ibv_mr *mr, uint64_t iova, unsigned int offset)
{
	struct rxe_pair pair = rxe_make_pair();
	enum ibv_wc_status status;
	int i, right = 1;

	memset(memory, 0, LENGTH);
	for (i = 0; i < DATA; i++)
		rxe_buffer[i] = i + 1;
	status = rxe_request(pair, IBV_WR_RDMA_WRITE, iova + offset, DATA, mr->rkey);
	rxe_end_pair(pair);
	for (i = 0; i < LENGTH; i++) {
		unsigned int at = i - offset;

		right &= memory[i] == (at < DATA ? at + 1 : 0);
	}
	return status == IBV_WC_SUCCESS && right;
}

static void check_region(uint64_t iova, const char *where)
{
	struct ibv_mr *mr;
	char rule[80];

	snprintf(rule, sizeof(rule), "with its iova %s, a WRITE reaches the region", where);
	rxe_need(mr = ibv_reg_mr_iova(rxe_pd, memory, LENGTH, iova, ACCESS));
	expect(is_written(mr, iova, 0), rule);
	expect(is_written(mr, iova, 256), "a WRITE begins at its offset in the page");
	expect(is_written(mr, iova, PAGE - DATA / 2), "a WRITE crosses pages");
	expect(!prefetch(mr, iova, LENGTH, IB_UVERBS_ADVISE_MR_FLAG_FLUSH),
	       "a region is prefetched");
	expect(prefetch(mr, iova + PAGE, LENGTH, IB_UVERBS_ADVISE_MR_FLAG_FLUSH) == EINVAL,
	       "no more than the region is prefetched");
	rxe_need(!ibv_dereg_mr(mr));
}

int main(int argc, char **argv)
{
	uint64_t address;
	struct ibv_mr *mr;

	rxe_open(argv[argc - 1]);
	memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rxe_need(memory != MAP_FAILED);
	address = (uintptr_t)memory;
	mr = ibv_reg_mr(rxe_pd, memory, LENGTH, ACCESS);
	if (!mr) {
		printf("the driver has no on-demand paging\n");
		return KSFT_SKIP;
	}
	rxe_need(!ibv_dereg_mr(mr));

	/* first what stays within the region, if iova and address are confused */
	check_region(address + 2 * PAGE, "behind its address");
	check_region(address, "at its address");
	check_region(1ULL << 43, "far away");
	check_region(0, "at 0");
	expect(prefetch(rxe_buffer_mr, (uintptr_t)rxe_buffer, DATA, 0) == EINVAL,
	       "a region without on-demand paging is not prefetched");
	expect(prefetch(rxe_buffer_mr, (uintptr_t)rxe_buffer, DATA,
			IB_UVERBS_ADVISE_MR_FLAG_FLUSH) == EINVAL,
	       "a region without on-demand paging is not prefetched at once");
	return 0;
}
