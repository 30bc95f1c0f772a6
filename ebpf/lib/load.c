// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach_type.h"
#include "attach.h"
#include "btf_file.h"
#include "btf_targets.h"
#include "capability.h"
#include "msg.h"
#include "rdma_dev.h"
#include "text.h"

static char libbpf_said[512]; /* its last warning, often the verifier's reason */

static int keep_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	if (msg_verbose)
		return vfprintf(stderr, format, args);
	if (level == LIBBPF_WARN) {
		vsnprintf(libbpf_said, sizeof(libbpf_said), format, args);
		libbpf_said[strcspn(libbpf_said, "\n")] = '\0';
	}
	return 0;
}

int load_begin(bool of_module)
{
	int err;

	libbpf_set_print(keep_warning);
	err = attach_type_register();
	return err ? load_error(err) : capability_check(of_module);
}

int load_check_driver(const struct driver *driver)
{
	if (driver->kind == DRIVER_ABSENT)
		return msg_error(EXIT_MISSING,
				 "no rxe device was created since the machine started",
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

int load_error(int err)
{
	bool denied = err == -EPERM; /* the verifier says EACCES */

	return msg_error(EXIT_RUN,
			 denied ? "kernel lockdown, or a container, forbids BPF"
				: "this kernel's verifier or BPF support differs from those known",
			 denied ? "run on the host; see kernel_lockdown(7)"
				: "--verbose shows the messages of libbpf and the verifier",
			 "cannot load the BPF programs: %s%s%s", strerror(-err),
			 libbpf_said[0] ? "; " : "", libbpf_said);
}

/* compilers inline some functions, so check each */
static int check_stock(struct bpf_object *object, struct bpf_program *arrival, bool *no_arrival)
{
	struct btf_file kernel, module;
	struct btf_targets functions = {};
	struct bpf_program *program;

	if (!btf_file_read(&kernel, "vmlinux", NULL) ||
	    !btf_file_read(&module, DRIVER_MODULE, &kernel)) {
		btf_file_free(&kernel);
		return msg_error(EXIT_MISSING, NULL, NULL, "cannot read the types of rdma_rxe");
	}
	bpf_object__for_each_program (program, object)
		if (text_has_prefix(bpf_program__name(program), "stock_") &&
		    bpf_program__autoload(program))
			btf_targets_add(&functions, program);
	btf_targets_find(&functions, &module);
	btf_file_free(&module);
	btf_file_free(&kernel);
	if (no_arrival)
		*no_arrival = false;
	for (unsigned int i = 0; i < functions.count; i++) {
		program = functions.at[i].program;
		if (functions.at[i].type)
			continue;
		if (program != arrival)
			return msg_error(EXIT_MISSING, "the compiler inlined it",
					 "load the instrumented driver: make module",
					 "the stock driver cannot be probed: no %s",
					 bpf_program__section_name(program));
		bpf_program__set_autoload(program, false);
		*no_arrival = true;
	}
	return 0;
}

int load_choose_driver(struct bpf_object *object, const struct driver *driver,
		       bool (*needs_events)(const char *program), struct bpf_program *arrival,
		       bool *no_arrival)
{
	bool stock = driver->kind == DRIVER_STOCK;
	struct bpf_program *program;
	int status;

	bpf_object__for_each_program (program, object) {
		const char *name = bpf_program__name(program);

		bpf_program__set_autoload(program, stock ? !needs_events(name)
							 : !text_has_prefix(name, "stock_"));
	}
	if (!stock)
		return 0;
	status = check_stock(object, arrival, no_arrival);
	if (!status)
		msg("the stock driver is loaded: fewer stages, from its functions "
		    "(%s(8), STOCK DRIVER)",
		    msg_program);
	return status;
}

bool load_watches_received(const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);

	return text_has_prefix(name, "rxe_rx_") || text_has_prefix(name, "stock_icrc_check_") ||
	       !strcmp(name, "stock_arrival") || !strcmp(name, "stock_rcv");
}

int load_find_device(const char *name, __u32 *index)
{
	struct rdma_dev devs[64];
	int n = rdma_dev_list(devs, sizeof(devs) / sizeof(devs[0]));

	if (n < 0)
		return msg_error(EXIT_MISSING, "the kernel has no RDMA support (module ib_core)",
				 NULL, "cannot list RDMA devices: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		if (!strcmp(devs[i].name, name)) {
			*index = devs[i].index;
			return 0;
		}
	}
	return msg_error(EXIT_MISSING, "the name is wrong, or the link was deleted",
			 "list the devices: rdma link", "no RDMA device '%s'", name);
}

int load_enable_stats(int *fd)
{
	*fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return *fd >= 0 ? 0
			: msg_error(EXIT_RUN, NULL, "leave out --bpf-stats",
				    "cannot switch on the kernel's BPF statistics: %s",
				    strerror(errno));
}

int load_program_stats(const struct bpf_object *object, struct program_stats *stats, int max)
{
	struct bpf_program *program;
	int n = 0;

	bpf_object__for_each_program (program, object) {
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		if (!attach_takes(program) || !bpf_program__autoload(program) || n == max ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len))
			continue;
		snprintf(stats[n].name, sizeof(stats[n].name), "%s", bpf_program__name(program));
		stats[n].runs = info.run_cnt;
		stats[n].run_ns = info.run_time_ns;
		stats[n].missed = info.recursion_misses;
		n++;
	}
	return n;
}
