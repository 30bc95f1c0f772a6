// SPDX-License-Identifier: GPL-2.0-only
#include "probes.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bth.h"
#include "calibrate.h"
#include "msg.h"
#include "size_class.h"

#include "rxestat.skel.h"

/* memory for cells, all CPUs together; a kind of packet takes about 32 kB of each */
#define CELLS_BUDGET (64u << 20)
#define MIN_SLOTS    48u
#define MAX_SLOTS    256u

static char libbpf_said[512]; /* its last warning: the verifier's reason is worth showing */

static int keep_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN) {
		if (getenv("ROCELAB_DEBUG"))
			return vfprintf(stderr, format, args);
		vsnprintf(libbpf_said, sizeof(libbpf_said), format, args);
		libbpf_said[strcspn(libbpf_said, "\n")] = '\0';
	}
	return 0;
}

static int check_driver(const struct driver *driver)
{
	if (driver->kind == DRIVER_ABSENT)
		return msg_error(EXIT_MISSING, "no rxe device was made since the machine started",
				 "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NETDEV",
				 "the driver rdma_rxe is not loaded");
	if (!driver->has_btf)
		return msg_error(
			EXIT_MISSING,
			"the kernel or the module was built without BTF (pahole was missing)",
			"install pahole (dwarves), build and load the module again: "
			"make module",
			"no type information for rdma_rxe in /sys/kernel/btf");
	return 0;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* events of the instrumented driver, or functions of the stock one */
static void choose_programs(struct rxestat_bpf *skel, const struct driver *driver)
{
	bool stock = driver->kind == DRIVER_STOCK;
	struct bpf_program *program;

	bpf_object__for_each_program (program, skel->obj) {
		const char *name = bpf_program__name(program);
		bool on_stock = has_prefix(name, "stock_");
		bool on_ours =
			has_prefix(name, "rxe_") ||
			(has_prefix(name, "calibrate_") && program != skel->progs.calibrate_empty &&
			 program != skel->progs.calibrate_clock);

		bpf_program__set_autoload(program, stock ? !on_ours : !on_stock);
	}
	bpf_map__set_autocreate(skel->maps.stock_packets, stock);
}

/* "fentry/rxe_prepare": is there such a function, with its types? */
static bool can_probe(const struct btf *module, const struct bpf_program *program)
{
	const char *function = strchr(bpf_program__section_name(program), '/');

	return function && btf__find_by_name_kind(module, function + 1, BTF_KIND_FUNC) > 0;
}

/* compilers inline what they like: ask for each function */
static int check_stock_functions(struct rxestat_bpf *skel)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	struct btf *module = kernel ? btf__load_module_btf("rdma_rxe", kernel) : NULL;
	struct bpf_program *program;
	int status = 0;

	if (!module)
		status = msg_error(EXIT_MISSING, NULL, NULL,
				   "cannot read the types of rdma_rxe: %s", strerror(errno));
	else if (!can_probe(module, skel->progs.stock_arrival)) {
		bpf_program__set_autoload(skel->progs.stock_arrival, false);
		skel->rodata->arrival_in_rcv = true;
	}
	bpf_object__for_each_program (program, skel->obj) {
		if (status || !has_prefix(bpf_program__name(program), "stock_") ||
		    !bpf_program__autoload(program) || can_probe(module, program))
			continue;
		status = msg_error(EXIT_MISSING, "the compiler made it part of another function",
				   "load the instrumented driver: make module",
				   "the stock driver cannot be probed: no %s",
				   bpf_program__section_name(program));
	}
	btf__free(module);
	btf__free(kernel);
	return status;
}

static int find_device(const struct config *config, struct rxestat_bpf *skel)
{
	struct rdma_dev devs[64];
	int n;

	if (!config->device)
		return 0;
	n = rdma_dev_list(devs, sizeof(devs) / sizeof(devs[0]));
	if (n < 0)
		return msg_error(EXIT_MISSING, "the kernel has no RDMA support (module ib_core)",
				 NULL, "cannot list RDMA devices: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		if (!strcmp(devs[i].name, config->device)) {
			skel->rodata->filtered = skel->rodata->filter_by_dev = true;
			skel->rodata->filter_dev = devs[i].index;
			return 0;
		}
	}
	return msg_error(EXIT_MISSING, "the name is wrong, or the link was deleted",
			 "list the devices: rdma link", "no RDMA device '%s'", config->device);
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

static int load_error(int err)
{
	bool denied = err == -EPERM; /* the verifier says EACCES */

	return msg_error(EXIT_RUN,
			 denied ? "kernel lockdown, or a container, forbids BPF"
				: "this kernel's verifier or BPF support differs from those known",
			 denied ? "run on the host; see kernel_lockdown(7)"
				: "ROCELAB_DEBUG=1 shows libbpf's and the verifier's words",
			 "cannot load the BPF programs: %s%s%s", strerror(-err),
			 libbpf_said[0] ? "; " : "", libbpf_said);
}

static bool wanted(const struct config *config, const struct rxestat_bpf *skel,
		   const struct bpf_program *program)
{
	/* of the programs that watch packets, those of the received ones; the others are for sent
	 */
	bool rx = program == skel->progs.rxe_rx_done || program == skel->progs.rxe_rx_packet ||
		  program == skel->progs.stock_arrival || program == skel->progs.stock_rcv ||
		  program == skel->progs.stock_icrc_check_begin ||
		  program == skel->progs.stock_icrc_check_end;

	return bpf_program__type(program) == BPF_PROG_TYPE_TRACING &&
	       bpf_program__autoload(program) && (rx ? config->rx : config->tx);
}

/* the last of the object first: a packet's way backwards, so that none is seen in part */
static int attach(struct probes *p, const struct config *config)
{
	struct bpf_program *program = bpf_object__prev_program(p->skel->obj, NULL);

	for (; program; program = bpf_object__prev_program(p->skel->obj, program)) {
		struct bpf_link *link;

		if (!wanted(config, p->skel, program))
			continue;
		link = bpf_program__attach(program);
		if (!link)
			return msg_error(EXIT_RUN, NULL, NULL, "cannot attach to %s: %s",
					 bpf_program__section_name(program), strerror(errno));
		p->links[p->nlinks++] = link;
	}
	return 0;
}

/* opened and configured, not yet in the kernel */
static int configure(struct probes *p, const struct config *config, struct session *session)
{
	int status;

	p->skel = rxestat_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	choose_programs(p->skel, &session->driver);
	if (session->driver.kind == DRIVER_STOCK) {
		status = check_stock_functions(p->skel);
		if (status)
			return status;
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

static int enable_stats(struct probes *p)
{
	p->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return p->stats_fd >= 0 ? 0
				: msg_error(EXIT_RUN, NULL, "leave out --bpf-stats",
					    "cannot switch on the kernel's BPF statistics: %s",
					    strerror(errno));
}

int probes_start(struct probes *p, const struct config *config, struct session *session)
{
	int status;

	memset(p, 0, sizeof(*p));
	p->stats_fd = -1;
	p->collector.quiesce.inner = p->collector.quiesce.outer = -1;
	if (geteuid() != 0)
		return msg_error(EXIT_MISSING, NULL, "run it with sudo",
				 "BPF programs on kernel events need root");
	libbpf_set_print(keep_warning);
	driver_inspect(&session->driver);
	status = check_driver(&session->driver);
	status = status ?: configure(p, config, session);
	status = status ?: load(p, config, session);
	if (!status && config->bpf_stats)
		status = enable_stats(p);
	return status ?: attach(p, config);
}

void probes_detach(struct probes *p)
{
	while (p->nlinks)
		bpf_link__destroy(p->links[--p->nlinks]);
}

void probes_account(const struct probes *p, struct session *session)
{
	struct bpf_program *program;

	session->lost = p->skel->bss->lost;
	collector_devices(&p->collector, session->dev_index);
	session->nprograms = 0;
	bpf_object__for_each_program (program, p->skel->obj) {
		struct program_stats *stats = &session->programs[session->nprograms];
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		if (bpf_program__type(program) != BPF_PROG_TYPE_TRACING ||
		    !bpf_program__autoload(program) || session->nprograms == MAX_PROGRAMS ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len))
			continue;
		snprintf(stats->name, sizeof(stats->name), "%s", bpf_program__name(program));
		stats->runs = info.run_cnt;
		stats->run_ns = info.run_time_ns;
		stats->missed = info.recursion_misses;
		stats->instructions = info.jited_prog_len;
		session->nprograms++;
	}
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
