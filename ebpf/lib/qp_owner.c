// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "qp_owner.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "map_clear.h"
#include "msg.h"
#include "rdma_dev.h"
#include "rdma_qp.h"

#define MAX_DEVICES 64

struct listed {
	struct owned_qp qp;
	__u32 pid;
};

/* the queue pairs of processes */
struct search {
	struct listed *at;
	size_t n, room;
	__u32 dev;
	int err;
};

int qp_owner_find(struct owner_choice *choice, const struct packet_filter *filter, enum owner_by by,
		  const struct driver *driver)
{
	choice->filter = packet_filter_by_owner(filter);
	choice->by = by;
	if (!owner_wanted(choice))
		return 0;
	if (driver->kind != DRIVER_INSTRUMENTED)
		return msg_error(EXIT_MISSING,
				 "the stock driver is loaded, which does not say whose queue pairs "
				 "are new",
				 "load rocelab's driver: make module",
				 "cannot %s queue pairs by process, cgroup or network namespace",
				 by ? "group" : "choose");
	return pidns_find(&choice->pidns) ?: place_options_find(&filter->places, &choice->places);
}

static int put(const struct bpf_map *map, const void *key, size_t size, __u8 number)
{
	return bpf_map__update_elem(map, key, size, &number, sizeof(number), BPF_ANY) ? -errno : 0;
}

static int cannot_write(int err)
{
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot write the BPF maps: %s",
			       strerror(-err))
		   : 0;
}

int qp_owner_calibrate(struct bpf_map *owned, const struct owner_choice *choice, struct owned_qp qp,
		       bool begin)
{
	if (!owner_wanted(choice))
		return 0;
	if (begin)
		return cannot_write(put(owned, &qp, sizeof(qp), OWNER_FIRST));
	return cannot_write(bpf_map__delete_elem(owned, &qp, sizeof(qp), 0) ? -errno : 0);
}

/* the kernel's own are in no place */
static void list(void *context, const struct rdma_qp *qp)
{
	struct search *search = context;

	if (!qp->pid || search->err)
		return;
	if (search->n == search->room) {
		size_t room = search->room ? 2 * search->room : 256;
		struct listed *grown = realloc(search->at, room * sizeof(*grown));

		if (!grown) {
			search->err = -ENOMEM;
			return;
		}
		search->at = grown;
		search->room = room;
	}
	search->at[search->n++] = (struct listed){{search->dev, qp->qpn}, qp->pid};
}

static int list_all(struct search *search)
{
	static struct rdma_dev devs[MAX_DEVICES];
	int n = rdma_dev_list(devs, MAX_DEVICES), err = n < 0 ? n : 0;

	for (int i = 0; i < n && !err; i++) {
		search->dev = devs[i].index;
		err = rdma_qp_list(search->dev, list, search) ?: search->err;
	}
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot list the queue pairs: %s",
			       strerror(-err))
		   : 0;
}

/* the program runs for every task while we read, and prints nothing */
static int run_for_each_task(const struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1, err = fd < 0 ? -errno : 0;
	ssize_t length = fd < 0 ? 0 : 1;
	char text[64];

	while (length) {
		length = read(fd, text, sizeof(text));
		/* EAGAIN: very many tasks; it goes on from there */
		if (length < 0 && errno != EAGAIN && errno != EINTR) {
			err = -errno;
			break;
		}
	}
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot look at the processes: %s",
			       strerror(-err))
		   : 0;
}

/* the place of each listed process; full: queue pairs for which there is no room */
static int place_all(const struct search *search, const struct bpf_object *object, __u64 *full)
{
	const struct bpf_map *owned = bpf_object__find_map_by_name(object, "owned_qps");
	const struct bpf_map *pids = bpf_object__find_map_by_name(object, "owner_pids");
	int status = 0;

	for (size_t i = 0; i < search->n && !status; i++)
		status = cannot_write(
			put(pids, &search->at[i].pid, sizeof(search->at[i].pid), OWNER_ELSEWHERE));
	status = status
			 ?: run_for_each_task(
				    bpf_object__find_program_by_name(object, "owner_existing"));
	for (size_t i = 0; i < search->n && !status; i++) {
		const struct listed *l = &search->at[i];
		__u8 number = OWNER_ELSEWHERE;
		int err = 0;

		bpf_map__lookup_elem(pids, &l->pid, sizeof(l->pid), &number, sizeof(number), 0);
		if (number != OWNER_ELSEWHERE)
			err = put(owned, &l->qp, sizeof(l->qp), number);
		if (err == -E2BIG)
			++*full;
		else
			status = cannot_write(err);
	}
	return status;
}

int qp_owner_add(const struct owner_choice *choice, const struct bpf_object *object)
{
	struct search search = {};
	__u64 full = 0;
	int status;

	if (!owner_wanted(choice))
		return 0;
	status = list_all(&search);
	status = status ?: place_all(&search, object, &full);
	free(search.at);
	if (!status)
		qp_owner_say_lost(choice, full);
	return status;
}

int qp_owner_forget(const struct owner_choice *choice, const struct bpf_object *object)
{
	static const char *const hashes[] = {"owned_qps", "owner_pids", "owner_numbers"};
	int err = 0;

	if (!owner_wanted(choice))
		return 0;
	for (unsigned int i = 0; i < sizeof(hashes) / sizeof(hashes[0]) && !err; i++)
		err = map_clear_keys(bpf_object__find_map_by_name(object, hashes[i]));
	return err ?: map_clear_array(bpf_object__find_map_by_name(object, "owner_places"));
}

void qp_owner_say_lost(const struct owner_choice *choice, __u64 lost)
{
	if (lost)
		msg("%llu queue pairs are %s: %d are followed at most, also of those that "
		    "are gone; start again to follow the present ones",
		    (unsigned long long)lost, choice->filter ? "left out" : "in no group",
		    OWNED_QPS);
}

bool qp_owner_is_followed_by(const char *program)
{
	return !strcmp(program, "rxe_qp_state");
}
