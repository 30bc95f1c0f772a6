// SPDX-License-Identifier: GPL-2.0-only
#include "dump_probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bth.h"
#include "calibrate.h"
#include "map_clear.h"
#include "msg.h"
#include "text.h"

#include "rxedump.skel.h"

static bool needs_events(const char *program)
{
	return text_has_prefix(program, "rxe_");
}

static int find_device(struct rxedump_bpf *skel, const struct config *config)
{
	return config->filter.device
		       ? load_find_device(config->filter.device, &skel->bss->filter_dev)
		       : 0;
}

static int set_filters(struct rxedump_bpf *skel, const struct config *config)
{
	typeof(skel->rodata) ro = skel->rodata;
	int status = find_device(skel, config);

	if (status)
		return status;
	ro->filter_by_dev = config->filter.device;
	ro->filter_qpn = config->filter.qpn;
	ro->filter_by_opcode = config->filter.opcodes;
	memcpy((void *)ro->opcode_chosen, config->filter.chosen, sizeof(ro->opcode_chosen));
	ro->sample_highest = (1ull << 32) / config->sample - 1;
	ro->filtered = config->filter.device || config->filter.qpn || config->filter.opcodes ||
		       config->sample > 1 || packet_filter_by_owner(&config->filter);
	return 0;
}

/* the kernel requires a power of two pages */
static __u32 ring_size(const struct config *config)
{
	__u64 wanted = (__u64)config->buffer_kib << 10, size = sysconf(_SC_PAGESIZE);

	while (size < wanted && size < 1u << 31)
		size <<= 1;
	return size;
}

/* the option counts the link header, which our copy may lack */
static void set_snap_length(struct rxedump_bpf *skel, const struct config *config)
{
	__u32 snap = config->snap_length;
	/* no packet of ours is larger than the path MTU */
	__u32 usual = sizeof(struct dump_record) + (snap < DUMP_ROOM_3 ? snap : DUMP_ROOM_3);
	__u32 wake = 1;

	skel->rodata->snap_with_link = snap;
	skel->rodata->snap_without_link = snap > LINK_LEN ? snap - LINK_LEN : 0;
	/* wake the reader when a quarter of the ring buffer is full of such packets */
	while (wake < 4096 && (__u64)wake * 8 * usual <= ring_size(config))
		wake *= 2;
	skel->rodata->wake_every = wake;
}

static int configure(struct probes *p, const struct config *config, const struct driver *driver)
{
	bool no_arrival = false;
	int status;

	p->skel = rxedump_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	status = load_choose_driver(p->skel->obj, driver, needs_events,
				    p->skel->progs.stock_arrival, &no_arrival);
	if (status)
		return status;
	p->skel->rodata->arrival_in_rcv = no_arrival;
	bpf_map__set_autocreate(p->skel->maps.stock_packets, driver->kind == DRIVER_STOCK);
	status = set_filters(p->skel, config);
	status = status ?: qp_owner_find(&p->owner, &config->filter, OWNER_BY_NONE, driver);
	if (status)
		return status;
	QP_OWNER_CHOOSE(p->skel, &p->owner);
	set_snap_length(p->skel, config);
	p->skel->rodata->rxe_destructor = driver->tx_destructor;
	for (int i = 0; i < 256; i++)
		p->skel->rodata->overhead[i] = bth_overhead(i);
	return 0;
}

int probes_load(struct probes *p, const struct config *config, struct session *session,
		struct calibration *cost, probes_take take, void *context)
{
	struct calibration_subject subject;
	struct owned_qp qp;
	int status, err;

	memset(p, 0, sizeof(*p));
	p->quiesce.inner = p->quiesce.outer = -1;
	status = session_inspect(session, true);
	status = status ?: load_check_driver(&session->driver);
	status = status ?: configure(p, config, &session->driver);
	if (status)
		return status;
	err = bpf_map__set_max_entries(p->skel->maps.ring, ring_size(config));
	err = err ?: rxedump_bpf__load(p->skel);
	if (err)
		return load_error(err);
	err = quiesce_open(&p->quiesce);
	if (!err) {
		p->ring = ring_buffer__new(bpf_map__fd(p->skel->maps.ring), take, context, NULL);
		err = p->ring ? 0 : -errno;
	}
	if (err)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot prepare the BPF maps: %s",
				 strerror(-err));
	subject = (struct calibration_subject)CALIBRATION_SUBJECT(p->skel);
	qp = (struct owned_qp){subject.dev, config->filter.qpn};
	status = qp_owner_calibrate(p->skel->maps.owned_qps, &p->owner, qp, true);
	if (status)
		return status;
	calibrate(&subject, &config->filter, cost);
	return qp_owner_calibrate(p->skel->maps.owned_qps, &p->owner, qp, false);
}

static bool is_wanted(const struct bpf_program *program, const void *context)
{
	const struct config *config = context;

	/* rxe_drop is an event of both directions */
	return text_has_prefix(bpf_program__name(program), "rxe_drop") ||
	       qp_owner_is_followed_by(bpf_program__name(program)) ||
	       (load_watches_received(program) ? config->filter.rx : config->filter.tx);
}

/*
 * As if nothing had been counted. Numbers of records go on, so that what is left in the table of
 * later stages belongs to no new one.
 */
static int forget(struct probes *p)
{
	typeof(p->skel->bss) bss = p->skel->bss;
	int err = QP_OWNER_FORGET(p->skel, &p->owner);

	err = err ?: map_clear_keys(p->skel->maps.stock_packets);
	memset(bss->lost, 0, sizeof(bss->lost));
	memset(bss->xmit_table, 0, sizeof(bss->xmit_table));
	memset(bss->done_table, 0, sizeof(bss->done_table));
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot empty the BPF maps: %s",
			       strerror(-err))
		   : 0;
}

int probes_attach(struct probes *p, const struct config *config, struct session *session)
{
	int status = forget(p);

	status = status ?: find_device(p->skel, config);
	status = status ?: session_attach(session, p->skel->obj, is_wanted, config);
	status = status ?: qp_owner_add(&p->owner, p->skel->obj);
	if (status)
		session_detach(session);
	return status;
}

int probes_detach(struct probes *p, struct session *session)
{
	session_detach(session);
	return quiesce_wait(&p->quiesce);
}

void probes_say_lost(const struct probes *p)
{
	qp_owner_say_lost(&p->owner, p->skel->bss->owned_lost);
}

struct dump_late *probes_late_table(const struct probes *p)
{
	return p->skel->bss->late_table;
}

/* a miss of the other programs costs a packet only some stages, or why it was dropped late */
static bool costs_a_packet(const char *program)
{
	return !strcmp(program, "rxe_tx_packet") || !strcmp(program, "rxe_rx_packet") ||
	       !strcmp(program, "rxe_drop") || text_has_prefix(program, "stock_");
}

void probes_losses(const struct probes *p, struct session *session, struct interfaces *interfaces,
		   struct losses *losses)
{
	const struct dump_lost *lost = p->skel->bss->lost;

	losses->ring = 0;
	memset(losses->interface, 0, sizeof(losses->interface));
	for (int dev = 0; dev < LOST_DEVICES; dev++) {
		__u64 sum = 0;

		for (int kind = 0; kind < DUMP_KINDS; kind++)
			sum += lost[dev].ring[kind];
		losses->ring += sum;
		for (int i = 0; i < interfaces->count && sum; i++) {
			if (interfaces->at[i].dev % LOST_DEVICES == (__u32)dev)
				losses->interface[i] = sum;
		}
	}
	session_account(session, p->skel->obj);
	losses->nested = session_missed(session, costs_a_packet);
}

void probes_close(struct probes *p)
{
	ring_buffer__free(p->ring);
	p->ring = NULL;
	if (p->skel) {
		quiesce_close(&p->quiesce);
		rxedump_bpf__destroy(p->skel);
	}
	p->skel = NULL;
}
