/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The loaded rdma_rxe, and what it offers to a probe. */
#ifndef ROCELAB_DRIVER_H
#define ROCELAB_DRIVER_H

#include <linux/types.h>
#include <stdbool.h>

#define DRIVER_MODULE "rdma_rxe"

enum driver_kind {
	DRIVER_ABSENT,	     /* rdma_rxe is not loaded */
	DRIVER_STOCK,	     /* without our events */
	DRIVER_INSTRUMENTED, /* with them */
};

struct driver {
	enum driver_kind kind;
	int has_btf;		    /* the types of the kernel and the module are known */
	char version[128];	    /* of the module; empty if it states none */
	char srcversion[64];	    /* modinfo's hash of the sources; empty if absent */
	char kernel[65];	    /* uname -r */
	__u64 tx_destructor;	    /* address of rxe_skb_tx_dtor; 0 if not found */
	__u64 text_begin, text_end; /* around the module's functions; 0 if not found */
	__u64 instance;		    /* another one each time it is loaded; 0: absent */
	int has_work;		    /* its tasks are work items, not tasklets */
};

/* Never fails: fields that cannot be read stay empty. */
void driver_inspect(struct driver *driver);
/* Whether the module is still the one that was inspected, or still absent. */
bool driver_is_same(const struct driver *driver);

#endif /* ROCELAB_DRIVER_H */
