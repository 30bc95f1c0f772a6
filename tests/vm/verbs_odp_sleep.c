// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * READs of a memory region with on-demand paging whose pages are on a disk and not in memory.
 *
 *   verbs_odp_sleep DEVICE PEER FILE READS
 *
 * Both ends are in this process, over RoCE v2; the peer reads a page of the file each time. Prints
 * "done".
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_ends.h"

#define STRIDE (1 << 20) /* no page is near another one */
#define DATA   64

int main(int argc, char **argv)
{
	int access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;
	unsigned char wanted[DATA], *file;
	struct ibv_mr *mr;
	size_t length;
	int fd, reads;

	if (argc != 5) {
		fprintf(stderr, "usage: verbs_odp_sleep DEVICE PEER FILE READS\n");
		return 2;
	}
	reads = atoi(argv[4]);
	length = (size_t)reads * STRIDE;
	CHECK((fd = open(argv[3], O_RDONLY)) >= 0);
	file = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(file != MAP_FAILED);
	/* no page comes along with another one */
	CHECK(!madvise(file, length, MADV_RANDOM));
	CHECK(!posix_fadvise(fd, 0, length, POSIX_FADV_DONTNEED));

	open_end(&owner, argv[1]);
	open_end(&peer, argv[2]);
	CHECK(mr = ibv_reg_mr(owner.pd, file, length, access));
	connect_ends();
	for (int i = 0; i < reads; i++) {
		uint64_t at = (uintptr_t)file + (uint64_t)i * STRIDE;

		CHECK(peer_requests(IBV_WR_RDMA_READ, at, DATA, mr->rkey) == IBV_WC_SUCCESS);
		CHECK(pread(fd, wanted, DATA, (off_t)i * STRIDE) == DATA);
		CHECK(!memcmp(peer.memory, wanted, DATA));
	}
	disconnect_ends();
	CHECK(!ibv_dereg_mr(mr));
	printf("done\n");
	return 0;
}
