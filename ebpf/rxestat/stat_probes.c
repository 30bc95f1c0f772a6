// SPDX-License-Identifier: GPL-2.0-only
#include "stat_probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bth.h"
#include "calibrate.h"
#include "load.h"
#include "map_clear.h"
#include "msg.h"
#include "qp_owner.h"
#include "size_class.h"
#include "stamp_clock.h"
#include "text.h"

#include "rxestat.skel.h"

/*
 * memory for the cells of all CPUs; a kind of packet takes about 64 kB of each CPU. Where packets
 * are grouped, a kind takes that for each group that has some.
 */
#define CELLS_BUDGET	    (128u << 20)
#define GROUPS_CELLS_BUDGET (512u << 20)
#define MIN_SLOTS	    48u
#define MAX_SLOTS	    128u
#define GROUPS_MAX_SLOTS    512u

/* calibration needs the events' records as well, except where it reads none */
static bool needs_events(const char *program)
{
	return text_has_prefix(program, "rxe_") ||
	       (text_has_prefix(program, "calibrate_") && strcmp(program, "calibrate_empty") &&
		strcmp(program, "calibrate_clock"));
}

static int find_device(const struct config *config, struct rxestat_bpf *skel)
{
	return config->filter.device
		       ? load_find_device(config->filter.device, &skel->bss->filter_dev)
		       : 0;
}

/* number classes in order of opcodes; opcodes without a name share one */
static void number_classes(const struct config *config, struct rxestat_bpf *skel,
			   struct report *report)
{
	unsigned int used = 1; /* 0: BTH_CLASS_OTHER */

	report->service[0] = 7;
	for (unsigned int op = 0; op < 256; op++) {
		enum bth_class class = bth_class_of(op);
		unsigned int number = 0;

		if (class != BTH_CLASS_OTHER) {
			for (number = 1; number < used; number++) {
				if (report->service[number] == op >> 5 &&
				    report->class[number] == class)
					break;
			}
			if (number == used) {
				report->service[used] = op >> 5;
				report->class[used++] = class;
			}
		}
		if (!config->filter.chosen[op])
			number = CLASS_IGNORED;
		skel->rodata->class_shifted[op] = number << KEY_SIZE_BITS;
	}
}

static void fill_tables(struct rxestat_bpf *skel)
{
	for (int i = 0; i < LOGLIN_TABLE_LEN; i++)
		skel->rodata->bucket_table[i] = loglin_bucket(i << LOGLIN_UNIT_BITS);
	for (int i = 0; i < 256; i++)
		skel->rodata->overhead[i] = bth_overhead(i);
	for (int i = 0; i < SIZE_TABLE_LEN; i++)
		skel->rodata->size_table[i] = size_class_of(i << SIZE_UNIT_BITS);
}

static int size_maps(struct rxestat_bpf *skel)
{
	size_t cell = sizeof(struct tx_cell) + sizeof(struct rx_cell) + sizeof(struct xmit_cell);
	int ncpus = libbpf_num_possible_cpus();
	bool grouped = skel->rodata->owner_by;
	unsigned int slots, most = grouped ? GROUPS_MAX_SLOTS : MAX_SLOTS;
	int err;

	if (ncpus < 0)
		return ncpus;
	slots = (grouped ? GROUPS_CELLS_BUDGET : CELLS_BUDGET) / (2 * cell * ncpus);
	if (slots > most)
		slots = most;
	if (slots < MIN_SLOTS)
		slots = MIN_SLOTS;
	skel->rodata->slots = slots;
	skel->rodata->kinds = grouped ? MAX_KINDS : slots;
	err = bpf_map__set_max_entries(skel->maps.tx_cells, 2 * slots);
	err = err ?: bpf_map__set_max_entries(skel->maps.rx_cells, 2 * slots);
	if (!err && grouped)
		err = bpf_map__set_max_entries(skel->maps.losses, OWNER_GROUPS * LOSS_PLACES);
	return err ?: bpf_map__set_max_entries(skel->maps.xmit_cells, 2 * slots);
}

static bool is_wanted(const struct bpf_program *program, const void *context)
{
	const struct config *config = context;

	if (losses_are_counted_by(bpf_program__name(program)) ||
	    qp_owner_is_followed_by(bpf_program__name(program)) ||
	    text_has_prefix(bpf_program__name(program), "work_"))
		return true;
	return load_watches_received(program) ? config->filter.rx : config->filter.tx;
}

static int choose_times(const struct config *config, struct rxestat_bpf *skel,
			const struct driver *driver)
{
	__u64 mult;
	int status;

	skel->rodata->with_xmit = config->xmit;
	if (!config->xmit) {
		bpf_program__set_autoload(skel->progs.net_dev_start_xmit, false);
		bpf_program__set_autoload(skel->progs.calibrate_xmit, false);
	}
	if (!config->work_requests) {
		bpf_program__set_autoload(skel->progs.work_post, false);
		bpf_program__set_autoload(skel->progs.work_raise, false);
		bpf_map__set_autocreate(skel->maps.work_cells, false);
	}
	skel->rodata->work_sample_mask = config->one_of - 1;
	if (driver->kind == DRIVER_STOCK)
		return 0;
	status = stamp_clock_read(&mult);
	if (!status) {
		skel->rodata->stamp_mult = mult;
		skel->rodata->stamp_limit = stamp_clock_least(mult, 1 << LOGLIN_TABLE_BITS);
	}
	return status;
}

/* opened and configured, not yet in the kernel */
static int configure(struct probes *p, const struct config *config, struct report *report)
{
	bool no_arrival = false;
	int status;

	p->skel = rxestat_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	status = load_choose_driver(p->skel->obj, &report->session.driver, needs_events,
				    p->skel->progs.stock_arrival, &no_arrival);
	if (status)
		return status;
	p->skel->rodata->arrival_in_rcv = no_arrival;
	status = choose_times(config, p->skel, &report->session.driver);
	if (status)
		return status;
	bpf_map__set_autocreate(p->skel->maps.stock_packets,
				report->session.driver.kind == DRIVER_STOCK);
	status = find_device(config, p->skel);
	if (!status)
		status = qp_owner_find(&p->owner, &config->filter, config->by,
				       &report->session.driver);
	if (status)
		return status;
	QP_OWNER_CHOOSE(p->skel, &p->owner);
	p->skel->rodata->filter_by_dev = config->filter.device;
	p->skel->rodata->filter_qpn = config->filter.qpn;
	p->skel->rodata->filtered = config->filter.device || config->filter.qpn || p->owner.filter;
	p->skel->rodata->rxe_destructor = report->session.driver.tx_destructor;
	number_classes(config, p->skel, report);
	fill_tables(p->skel);
	return 0;
}

/* a sent and a received packet, with stages of typical length */
static void make_records(const struct config *config, struct rxestat_bpf *skel)
{
	struct packet_id id = calibrate_packet_id(skel->bss->filter_dev, &config->filter);
	struct calibration_records *r = &skel->bss->calibrate_record;
	__u64 mult = skel->rodata->stamp_mult, now = 0;

	memcpy(&r->tx.id, &id, sizeof(id));
	for (int i = 0; i < RXE_TX_STAGES; i++)
		r->tx.end[i] = now += stamp_clock_least(mult, calibrate_stage_ns(i));
	id.flags = RXE_FLAG_ARRIVED | RXE_FLAG_DONE;
	memcpy(&r->rx.id, &id, sizeof(id));
	for (int i = 0; i < RXE_RX_STAGES; i++)
		r->rx.arrival[i] = stamp_clock_least(mult, calibrate_stage_ns(i));
	for (int i = 0; i < RXE_DONE_STAGES; i++)
		r->rx.stage[i] = stamp_clock_least(mult, calibrate_stage_ns(i));
}

static void measure_cost(const struct config *config, struct rxestat_bpf *skel,
			 struct calibration *cost)
{
	const struct calibration_subject subject = {
		.empty = skel->progs.calibrate_empty,
		.clock = skel->progs.calibrate_clock,
		.tx = skel->progs.calibrate_tx,
		.xmit = skel->progs.calibrate_xmit,
		.rx = skel->progs.calibrate_rx,
	};

	if (skel->rodata->stamp_mult)
		make_records(config, skel);
	calibrate(&subject, &config->filter, cost);
}

static int load(struct probes *p, const struct config *config, struct report *report)
{
	struct owned_qp qp = {p->skel->bss->filter_dev, config->filter.qpn};
	int err = size_maps(p->skel);

	err = err ?: rxestat_bpf__load(p->skel);
	if (err)
		return load_error(err);
	err = collector_open(&p->collector, p->skel);
	err = err ?: collector_prepare(&p->collector);
	if (!err)
		err = loss_reader_open(&p->losses, &report->losses,
				       bpf_map__max_entries(p->skel->maps.losses));
	if (!err) {
		int status = qp_owner_calibrate(p->skel->maps.owned_qps, &p->owner, qp, true);

		if (status)
			return status;
		measure_cost(config, p->skel, &report->cost);
		status = qp_owner_calibrate(p->skel->maps.owned_qps, &p->owner, qp, false);
		if (status)
			return status;
	}
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot prepare the BPF maps: %s",
			       strerror(-err))
		   : 0;
}

int probes_load(struct probes *p, const struct config *config, struct report *report)
{
	struct session *session = &report->session;
	int status;

	memset(p, 0, sizeof(*p));
	report->owners.by = config->by;
	p->collector.quiesce.inner = p->collector.quiesce.outer = -1;
	status = session_inspect(session, true);
	status = status ?: load_check_driver(&session->driver);
	status = status ?: configure(p, config, report);
	return status ?: load(p, config, report);
}

/* as if nothing had been counted */
static int forget(struct probes *p, struct report *report)
{
	int err = collector_forget(&p->collector);

	err = err ?: loss_reader_forget(&p->losses, p->skel);
	err = err ?: work_forget(&report->work, p->skel);
	err = err ?: QP_OWNER_FORGET(p->skel, &p->owner);
	err = err ?: map_clear_keys(p->skel->maps.stock_packets);
	owners_clear(&report->owners);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot empty the BPF maps: %s",
			       strerror(-err))
		   : 0;
}

int probes_begin(struct probes *p, const struct config *config, struct report *report)
{
	struct session *session = &report->session;
	int status = forget(p, report);

	status = status ?: find_device(config, p->skel);
	if (!status && session->driver.kind == DRIVER_INSTRUMENTED)
		status = sample_begin(&report->sample, config->one_of, config->filter.device);
	else if (!status && config->one_of > 1)
		status = msg_error(EXIT_MISSING, "the stock driver is loaded",
				   "load the instrumented driver: make module",
				   "only the instrumented driver can choose packets");
	status = status ?: session_attach(session, p->skel->obj, is_wanted, config);
	status = status ?: qp_owner_add(&p->owner, p->skel->obj);
	if (status)
		probes_end(p, report);
	else
		p->skel->bss->work_ready = true;
	return status;
}

void probes_end(struct probes *p, struct report *report)
{
	session_detach(&report->session);
	sample_end(&report->sample);
	if (p->skel)
		p->skel->bss->work_ready = false;
}

int probes_collect(struct probes *p, struct report *report, struct groups *groups)
{
	bool half = p->skel->bss->half != 0;
	int err = collector_poll(&p->collector, &report->owners, groups);

	return err ?: work_poll(&report->work, p->skel, half);
}

int probes_account(struct probes *p, struct report *report)
{
	report->lost = p->skel->bss->lost;
	report->losses.known = report->session.driver.kind == DRIVER_INSTRUMENTED;
	collector_devices(&p->collector, report->dev_index);
	session_account(&report->session, p->skel->obj);
	work_account(&report->work, p->skel, &report->session);
	return loss_reader_read(&p->losses, p->skel, &report->owners, &report->losses);
}

int probes_check_clock(const struct probes *p)
{
	return stamp_clock_check(p->skel->rodata->stamp_mult);
}

void probes_restart(struct probes *p)
{
	loss_reader_restart(&p->losses);
}

void probes_say_lost(const struct probes *p, const struct report *report)
{
	qp_owner_say_lost(&p->owner, p->skel->bss->owned_lost);
	owners_say_beyond(&report->owners);
}

void probes_close(struct probes *p, struct report *report)
{
	if (p->skel) {
		owners_clear(&report->owners);
		loss_reader_close(&p->losses, &report->losses);
		collector_close(&p->collector);
		rxestat_bpf__destroy(p->skel);
	}
	p->skel = NULL;
}
