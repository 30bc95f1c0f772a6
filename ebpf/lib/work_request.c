// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "work_request.h"

const char *work_opcode_name(unsigned int opcode)
{
	/* enum ib_wc_opcode of include/rdma/ib_verbs.h */
	static const char *const names[] = {"SEND",	 "RDMA_WRITE",	"RDMA_READ", "COMP_SWAP",
					    "FETCH_ADD", "BIND_MW",	"LOCAL_INV", "LSO",
					    "FLUSH",	 "ATOMIC_WRITE"};

	return opcode < sizeof(names) / sizeof(names[0]) ? names[opcode] : "OTHER";
}
