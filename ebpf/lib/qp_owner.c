// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "qp_owner.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "msg.h"
#include "rdma_dev.h"
#include "rdma_qp.h"

#define MAX_DEVICES 64

struct search {
	const struct task_places *owner;
	struct bpf_map *owned;
	__u32 dev;
	int hidden; /* queue pairs whose process we may not look at */
	__u64 full; /* those for which there is no room */
	int err;
};

int qp_owner_find(struct task_places *owner, const struct packet_filter *filter,
		  const struct driver *driver)
{
	if (!packet_filter_by_owner(filter))
		return 0;
	if (driver->kind != DRIVER_INSTRUMENTED)
		return msg_error(EXIT_MISSING,
				 "the stock driver is loaded, which does not say whose queue pairs "
				 "are new",
				 "load rocelab's driver: make module",
				 "cannot choose queue pairs by cgroup or network namespace");
	return task_places_find(owner, filter->cgroup, filter->netns);
}

static int put(struct bpf_map *owned, __u32 dev, __u32 qpn)
{
	const struct owned_qp key = {dev, qpn};
	__u8 one = 1;

	return bpf_map__update_elem(owned, &key, sizeof(key), &one, sizeof(one), BPF_ANY) ? -errno
											  : 0;
}

static int cannot_write(int err)
{
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot write the BPF maps: %s",
			       strerror(-err))
		   : 0;
}

int qp_owner_calibrate(struct bpf_map *owned, const struct packet_filter *filter, __u32 dev,
		       bool begin)
{
	const struct owned_qp key = {dev, filter->qpn};

	if (!packet_filter_by_owner(filter))
		return 0;
	if (begin)
		return cannot_write(put(owned, dev, filter->qpn));
	return cannot_write(bpf_map__delete_elem(owned, &key, sizeof(key), 0) ? -errno : 0);
}

static void look(void *context, const struct rdma_qp *qp)
{
	struct search *search = context;
	int has = qp->pid ? task_places_have(search->owner, qp->pid) : 0;
	int err = has > 0 ? put(search->owned, search->dev, qp->qpn) : 0;

	if (err == -E2BIG)
		search->full++;
	else if (err)
		search->err = search->err ?: err;
	else if (has == -EACCES || has == -EPERM)
		search->hidden++;
}

int qp_owner_add(const struct task_places *owner, struct bpf_map *owned)
{
	struct search search = {.owner = owner, .owned = owned};
	static struct rdma_dev devs[MAX_DEVICES];
	int n = task_places_chosen(owner) ? rdma_dev_list(devs, MAX_DEVICES) : 0;

	for (int i = 0; i < n && !search.err; i++) {
		search.dev = devs[i].index;
		search.err = rdma_qp_list(search.dev, look, &search);
	}
	if (n < 0 || search.err)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot list the queue pairs: %s",
				 strerror(n < 0 ? -n : -search.err));
	if (search.hidden)
		msg("%d queue pairs are left out: whose they are is shown only with "
		    "cap_sys_ptrace",
		    search.hidden);
	qp_owner_say_lost(search.full);
	return 0;
}

void qp_owner_say_lost(__u64 lost)
{
	if (lost)
		msg("%llu queue pairs are left out: %d are followed at most, also of those that "
		    "are gone; start again to follow the present ones",
		    (unsigned long long)lost, OWNED_QPS);
}

bool qp_owner_is_followed_by(const char *program)
{
	return !strcmp(program, "rxe_qp_state");
}
