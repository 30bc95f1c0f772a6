// SPDX-License-Identifier: GPL-2.0-only
#include "kernel_features.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "btf_file.h"
#include "btf_targets.h"
#include "capability.h"
#include "load.h"
#include "msg.h"

#include "stacks.h"
#include "text.h"

#include "rxecpu.skel.h"

const char *const feature_names[FEATURES] = {
	[FEATURE_SYSCALL] = "syscall",	     [FEATURE_FAULT] = "fault",
	[FEATURE_SOCKET] = "network.socket", [FEATURE_VECTOR] = "hardirq.vectors",
	[FEATURE_RXE_TASKS] = "rxe.tasks",   [FEATURE_RXE_RECEIVE] = "rxe.receive",
};

const char *const feature_absence[FEATURES] = {
	[FEATURE_SYSCALL] = "system calls count as user",
	[FEATURE_FAULT] = "page faults count as user",
	[FEATURE_SOCKET] = "socket calls count as the caller's work, not as network",
	[FEATURE_VECTOR] = "timer and inter-processor interrupts count as what they interrupt",
	[FEATURE_RXE_TASKS] = "the driver's tasks count as other",
	[FEATURE_RXE_RECEIVE] = "the driver's receive handler counts as network",
};

/* load the programs whose target was found */
static void choose_found(const struct btf_targets *targets)
{
	for (unsigned int i = 0; i < targets->count; i++)
		if (targets->at[i].type)
			bpf_program__set_autoload(targets->at[i].program, true);
}

static bool is_of_driver(const char *name)
{
	return text_has_prefix(name, "rxe_") || text_has_prefix(name, "stock_");
}

/* whether a program for the driver suits the one that is loaded */
static bool suits(const char *name, const struct driver *driver)
{
	return text_has_prefix(name, "rxe_") ? driver->kind == DRIVER_INSTRUMENTED
					     : driver->kind == DRIVER_STOCK;
}

static bool loads(const struct bpf_program *program)
{
	return bpf_program__autoload(program);
}

/* by events if they are all there, else by the functions' ends */
static void choose_socket(struct rxecpu_bpf *skel)
{
	struct bpf_program *events[] = {
		skel->progs.socket_send_begin,
		skel->progs.socket_send_end,
		skel->progs.socket_recv_begin,
		skel->progs.socket_recv_end,
	};
	struct bpf_program *functions[] = {
		skel->progs.socket_inet_sendmsg,  skel->progs.socket_inet_sendmsg_ret,
		skel->progs.socket_inet_recvmsg,  skel->progs.socket_inet_recvmsg_ret,
		skel->progs.socket_inet6_sendmsg, skel->progs.socket_inet6_sendmsg_ret,
		skel->progs.socket_inet6_recvmsg, skel->progs.socket_inet6_recvmsg_ret,
	};
	bool has = true;

	for (int i = 0; i < 4; i++)
		has &= loads(events[i]);
	for (int i = 0; i < 4 && !has; i++)
		bpf_program__set_autoload(events[i], false);
	for (int i = 0; i < 8 && has; i++)
		bpf_program__set_autoload(functions[i], false);
}

static void choose(struct rxecpu_bpf *skel, const struct driver *driver,
		   const struct btf_file *kernel, const struct btf_file *module)
{
	struct btf_targets of_kernel = {}, of_driver = {};
	struct bpf_program *program;

	bpf_object__for_each_program (program, skel->obj) {
		const char *name = bpf_program__name(program);

		if (!attach_takes(program))
			continue;
		bpf_program__set_autoload(program, false);
		if (!is_of_driver(name))
			btf_targets_add(&of_kernel, program);
		else if (suits(name, driver))
			btf_targets_add(&of_driver, program);
	}
	btf_targets_find(&of_kernel, kernel);
	choose_found(&of_kernel);
	btf_targets_find(&of_driver, module);
	choose_found(&of_driver);
	/* the function needs a program at its beginning only where there is no such event */
	if (loads(skel->progs.fault_of_user))
		bpf_program__set_autoload(skel->progs.fault_begin, false);
	choose_socket(skel);
	/* the handler calls it: needed only where the compiler inlined the handler */
	if (loads(skel->progs.stock_rxe_udp_encap_recv)) {
		bpf_program__set_autoload(skel->progs.stock_rxe_rcv, false);
		bpf_program__set_autoload(skel->progs.stock_rxe_rcv_ret, false);
	}
}

static int check(const struct rxecpu_bpf *skel)
{
	if (loads(skel->progs.task_switch) && loads(skel->progs.softirq_begin) &&
	    loads(skel->progs.softirq_end) && loads(skel->progs.irq_begin) &&
	    loads(skel->progs.irq_end))
		return 0;
	return msg_error(EXIT_MISSING, "the kernel was built without BTF, or without tracepoints",
			 "run a distribution's kernel, 6.1 or later",
			 "no types of the events of tasks and interrupts in /sys/kernel/btf");
}

int features_choose(struct rxecpu_bpf *skel, const struct driver *driver, bool has[FEATURES])
{
	struct btf_file kernel, module = {};

	/* everybody may read a module's types, but not attach to what they name: lib/capability.h
	 */
	if (btf_file_read(&kernel, "vmlinux", NULL) && driver->has_btf &&
	    capability_has(CAP_SYS_ADMIN))
		btf_file_read(&module, DRIVER_MODULE, &kernel);
	choose(skel, driver, &kernel, &module);
	btf_file_free(&module);
	btf_file_free(&kernel);
	has[FEATURE_SYSCALL] = loads(skel->progs.syscall_enter) && loads(skel->progs.syscall_exit);
	has[FEATURE_FAULT] = (loads(skel->progs.fault_of_user) || loads(skel->progs.fault_begin)) &&
			     loads(skel->progs.fault_end);
	has[FEATURE_SOCKET] =
		loads(skel->progs.socket_send_begin) ||
		(loads(skel->progs.socket_inet_sendmsg) && loads(skel->progs.socket_inet_recvmsg));
	has[FEATURE_VECTOR] = loads(skel->progs.vector_local_timer_entry);
	/* tasks of the stock driver: tasklets by name, work items by address of their function */
	has[FEATURE_RXE_TASKS] =
		loads(skel->progs.rxe_task_begin) || loads(skel->progs.stock_rxe_do_task) ||
		(driver->has_work && driver->text_end && loads(skel->progs.work_begin));
	has[FEATURE_RXE_RECEIVE] = loads(skel->progs.rxe_rx_begin) ||
				   loads(skel->progs.stock_rxe_udp_encap_recv) ||
				   loads(skel->progs.stock_rxe_rcv);
	return check(skel);
}
