// SPDX-License-Identifier: GPL-2.0-only
#include "probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bth.h"
#include "calibrate.h"
#include "msg.h"

#include "rxedump.skel.h"

/* events of the instrumented driver, or functions of the stock one */
static void choose_programs(struct rxedump_bpf *skel, const struct driver *driver)
{
	bool stock = driver->kind == DRIVER_STOCK;
	struct bpf_program *program;

	bpf_object__for_each_program (program, skel->obj) {
		const char *name = bpf_program__name(program);
		bool on_stock = load_has_prefix(name, "stock_");
		bool on_ours = load_has_prefix(name, "rxe_");

		bpf_program__set_autoload(program, stock ? !on_ours : !on_stock);
	}
	bpf_map__set_autocreate(skel->maps.stock_packets, stock);
}

static int set_filters(struct rxedump_bpf *skel, const struct config *config)
{
	typeof(skel->rodata) ro = skel->rodata;
	__u32 index = 0;
	int status = config->device ? load_find_device(config->device, &index) : 0;

	if (status)
		return status;
	ro->filter_by_dev = config->device;
	ro->filter_dev = index;
	ro->filter_qpn = config->qpn;
	ro->filter_by_opcode = !config->all_opcodes;
	memcpy((void *)ro->opcode_chosen, config->chosen, sizeof(ro->opcode_chosen));
	ro->sample_highest = (1ull << 32) / config->sample - 1;
	ro->filtered = config->device || config->qpn || !config->all_opcodes || config->sample > 1;
	return 0;
}

/* the kernel wants a power of two pages */
static __u32 ring_size(const struct config *config)
{
	__u64 wanted = (__u64)config->buffer_kib << 10, size = sysconf(_SC_PAGESIZE);

	while (size < wanted && size < 1u << 31)
		size <<= 1;
	return size;
}

/* what is asked for is of a whole frame; we copy it with or without its link header */
static void set_snap_length(struct rxedump_bpf *skel, const struct config *config)
{
	__u32 snap = config->snap_length;
	/* packets are of the path MTU at most, but for strangers' */
	__u32 usual = sizeof(struct dump_record) + (snap < DUMP_ROOM_3 ? snap : DUMP_ROOM_3);
	__u32 wake = 1;

	skel->rodata->snap_with_link = snap;
	skel->rodata->snap_without_link = snap > LINK_LEN ? snap - LINK_LEN : 0;
	/* at a quarter of the ring buffer, by the largest of the usual */
	while (wake < 4096 && (__u64)wake * 8 * usual <= ring_size(config))
		wake *= 2;
	skel->rodata->wake_every = wake;
}

static int configure(struct probes *p, const struct config *config, const struct driver *driver)
{
	bool has_arrival;
	int status;

	p->skel = rxedump_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	choose_programs(p->skel, driver);
	if (driver->kind == DRIVER_STOCK) {
		status = load_check_stock(p->skel->obj, p->skel->progs.stock_arrival, &has_arrival);
		if (status)
			return status;
		p->skel->rodata->arrival_in_rcv = !has_arrival;
		msg("the stock driver is loaded: fewer stages, from its functions "
		    "(rxedump(8), STOCK DRIVER)");
	}
	status = set_filters(p->skel, config);
	if (status)
		return status;
	set_snap_length(p->skel, config);
	p->skel->rodata->rxe_destructor = driver->tx_destructor;
	for (int i = 0; i < 256; i++)
		p->skel->rodata->overhead[i] = bth_overhead(i);
	return 0;
}

int probes_load(struct probes *p, const struct config *config, struct driver *driver,
		struct calibration *cost, probes_take take, void *context)
{
	int status, err;

	memset(p, 0, sizeof(*p));
	p->stats_fd = -1;
	p->quiesce.inner = p->quiesce.outer = -1;
	status = load_begin();
	if (status)
		return status;
	driver_inspect(driver);
	status = load_check_driver(driver);
	status = status ?: configure(p, config, driver);
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
	calibrate(p->skel, config, cost);
	memset(p->skel->bss->lost, 0, sizeof(p->skel->bss->lost));
	return config->bpf_stats ? load_enable_stats(&p->stats_fd) : 0;
}

static bool wanted(const struct bpf_program *program, const void *context)
{
	const struct config *config = context;

	/* drops are of both directions */
	return !strcmp(bpf_program__name(program), "rxe_drop") ||
	       (load_watches_received(program) ? config->rx : config->tx);
}

int probes_attach(struct probes *p, const struct config *config)
{
	return attach_backwards(&p->attached, p->skel->obj, wanted, config);
}

int probes_detach(struct probes *p)
{
	attach_undo(&p->attached);
	return quiesce_wait(&p->quiesce);
}

struct dump_late *probes_late_table(const struct probes *p)
{
	return p->skel->bss->late_table;
}

void probes_losses(const struct probes *p, struct interfaces *interfaces, struct losses *losses)
{
	const struct dump_lost *lost = p->skel->bss->lost;
	struct program_stats stats[MAX_PROGRAMS];
	int n = probes_statistics(p, stats);

	losses->ring = losses->nested = 0;
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
	/* of the others a miss costs a packet some stages, no more */
	for (int i = 0; i < n; i++) {
		if (!strcmp(stats[i].name, "rxe_tx_packet") ||
		    !strcmp(stats[i].name, "rxe_rx_packet") ||
		    load_has_prefix(stats[i].name, "stock_"))
			losses->nested += stats[i].missed;
	}
}

int probes_statistics(const struct probes *p, struct program_stats stats[MAX_PROGRAMS])
{
	return load_program_stats(p->skel->obj, stats, MAX_PROGRAMS);
}

void probes_close(struct probes *p)
{
	if (p->stats_fd >= 0)
		close(p->stats_fd);
	p->stats_fd = -1;
	ring_buffer__free(p->ring);
	p->ring = NULL;
	if (p->skel) {
		attach_undo(&p->attached);
		quiesce_close(&p->quiesce);
		rxedump_bpf__destroy(p->skel);
	}
	p->skel = NULL;
}
