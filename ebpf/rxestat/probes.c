// SPDX-License-Identifier: GPL-2.0-only
#include "probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bth.h"
#include "calibrate.h"
#include "load.h"
#include "msg.h"
#include "size_class.h"

#include "rxestat.skel.h"

/* memory for cells, all CPUs together; a kind of packet takes about 32 kB of each */
#define CELLS_BUDGET (64u << 20)
#define MIN_SLOTS    48u
#define MAX_SLOTS    256u

/* events of the instrumented driver, or functions of the stock one */
static void choose_programs(struct rxestat_bpf *skel, const struct driver *driver)
{
	bool stock = driver->kind == DRIVER_STOCK;
	struct bpf_program *program;

	bpf_object__for_each_program (program, skel->obj) {
		const char *name = bpf_program__name(program);
		bool on_stock = load_has_prefix(name, "stock_");
		bool on_ours = load_has_prefix(name, "rxe_") ||
			       (load_has_prefix(name, "calibrate_") &&
				program != skel->progs.calibrate_empty &&
				program != skel->progs.calibrate_clock);

		bpf_program__set_autoload(program, stock ? !on_ours : !on_stock);
	}
	bpf_map__set_autocreate(skel->maps.stock_packets, stock);
}

static int find_device(const struct config *config, struct rxestat_bpf *skel)
{
	__u32 index;
	int status;

	if (!config->device)
		return 0;
	status = load_find_device(config->device, &index);
	if (!status) {
		skel->rodata->filtered = skel->rodata->filter_by_dev = true;
		skel->rodata->filter_dev = index;
	}
	return status;
}

/* classes are numbered as they come; all that no specification names are one */
static void number_classes(const struct config *config, struct rxestat_bpf *skel,
			   struct session *session)
{
	unsigned int used = 1; /* 0: BTH_OTHER */

	session->service[0] = 7;
	for (unsigned int op = 0; op < 256; op++) {
		enum bth_class class = bth_class_of(op);
		unsigned int number = 0;

		if (class != BTH_OTHER) {
			for (number = 1; number < used; number++) {
				if (session->service[number] == op >> 5 &&
				    session->class[number] == class)
					break;
			}
			if (number == used) {
				session->service[used] = op >> 5;
				session->class[used++] = class;
			}
		}
		if (!config->all_opcodes && !config->chosen[op])
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
	size_t cell = sizeof(struct tx_cell) + sizeof(struct rx_cell) + sizeof(struct done_cell) +
		      sizeof(struct xmit_cell);
	int ncpus = libbpf_num_possible_cpus();
	unsigned int slots;
	int err;

	if (ncpus < 0)
		return ncpus;
	slots = CELLS_BUDGET / (2 * cell * ncpus);
	if (slots > MAX_SLOTS)
		slots = MAX_SLOTS;
	if (slots < MIN_SLOTS)
		slots = MIN_SLOTS;
	skel->rodata->slots = slots;
	err = bpf_map__set_max_entries(skel->maps.tx_cells, 2 * slots);
	err = err ?: bpf_map__set_max_entries(skel->maps.rx_cells, 2 * slots);
	err = err ?: bpf_map__set_max_entries(skel->maps.done_cells, 2 * slots);
	return err ?: bpf_map__set_max_entries(skel->maps.xmit_cells, 2 * slots);
}

static bool wanted(const struct bpf_program *program, const void *context)
{
	const struct config *config = context;

	return load_watches_received(program) ? config->rx : config->tx;
}

/* opened and configured, not yet in the kernel */
static int configure(struct probes *p, const struct config *config, struct session *session)
{
	bool has_arrival;
	int status;

	p->skel = rxestat_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	choose_programs(p->skel, &session->driver);
	if (session->driver.kind == DRIVER_STOCK) {
		status = load_check_stock(p->skel->obj, p->skel->progs.stock_arrival, &has_arrival);
		if (status)
			return status;
		p->skel->rodata->arrival_in_rcv = !has_arrival;
		msg("the stock driver is loaded: fewer stages, from its functions "
		    "(rxestat(8), STOCK DRIVER)");
	}
	status = find_device(config, p->skel);
	if (status)
		return status;
	p->skel->rodata->filter_qpn = config->qpn;
	p->skel->rodata->filtered |= config->qpn != 0;
	p->skel->rodata->rxe_destructor = session->driver.tx_destructor;
	number_classes(config, p->skel, session);
	fill_tables(p->skel);
	return 0;
}

static int load(struct probes *p, const struct config *config, struct session *session)
{
	int err = size_maps(p->skel);

	err = err ?: rxestat_bpf__load(p->skel);
	if (err)
		return load_error(err);
	err = collector_open(&p->collector, p->skel);
	if (!err) {
		calibrate(p->skel, config, &session->cost);
		err = collector_reset(&p->collector);
	}
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot prepare the BPF maps: %s",
			       strerror(-err))
		   : 0;
}

int probes_start(struct probes *p, const struct config *config, struct session *session)
{
	int status;

	memset(p, 0, sizeof(*p));
	p->stats_fd = -1;
	p->collector.quiesce.inner = p->collector.quiesce.outer = -1;
	status = load_begin();
	if (status)
		return status;
	driver_inspect(&session->driver);
	status = load_check_driver(&session->driver);
	status = status ?: configure(p, config, session);
	status = status ?: load(p, config, session);
	if (!status && config->bpf_stats)
		status = load_enable_stats(&p->stats_fd);
	return status ?: attach_backwards(&p->attached, p->skel->obj, wanted, config);
}

void probes_detach(struct probes *p)
{
	attach_undo(&p->attached);
}

void probes_account(const struct probes *p, struct session *session)
{
	session->lost = p->skel->bss->lost;
	collector_devices(&p->collector, session->dev_index);
	session->nprograms = load_program_stats(p->skel->obj, session->programs, MAX_PROGRAMS);
}

void probes_close(struct probes *p)
{
	if (p->stats_fd >= 0)
		close(p->stats_fd);
	probes_detach(p);
	if (p->skel) {
		collector_close(&p->collector);
		rxestat_bpf__destroy(p->skel);
	}
	p->skel = NULL;
}
