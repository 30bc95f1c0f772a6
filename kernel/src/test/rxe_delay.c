// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "rxe_delay.h"

static const char * const names[] = {
	[RXE_DELAY_OFF]		= "off",
	[RXE_DELAY_TX_WQE]	= "tx.wqe",
	[RXE_DELAY_TX_ALLOC]	= "tx.alloc",
	[RXE_DELAY_TX_BTH]	= "tx.bth",
	[RXE_DELAY_TX_ROUTE]	= "tx.route",
	[RXE_DELAY_TX_NET]	= "tx.net",
	[RXE_DELAY_TX_COPY]	= "tx.copy",
	[RXE_DELAY_TX_ICRC]	= "tx.icrc",
	[RXE_DELAY_RX_PARSE]	= "rx.parse",
	[RXE_DELAY_RX_ICRC]	= "rx.icrc",
	[RXE_DELAY_DONE_QUEUE]	= "done.queue",
	[RXE_DELAY_DONE_EXEC]	= "done.exec",
	[RXE_DELAY_DONE_COPY]	= "done.copy",
	[RXE_DELAY_DONE_CQE]	= "done.cqe",
	[RXE_DELAY_DONE_REPLY]	= "done.reply",
};

unsigned int rxe_delay_stage;
static unsigned int delay_ns;

void __rxe_delay(void)
{
	u64 end = ktime_get_mono_fast_ns() + READ_ONCE(delay_ns);

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

static int stage_set(const char *value, const struct kernel_param *kp)
{
	int i = sysfs_match_string(names, value);

	if (i < 0)
		return i;
	WRITE_ONCE(rxe_delay_stage, i);
	return 0;
}

static int stage_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", names[READ_ONCE(rxe_delay_stage)]);
}

static const struct kernel_param_ops stage_ops = {
	.set = stage_set,
	.get = stage_get,
};

module_param_cb(delay_stage, &stage_ops, NULL, 0644);
MODULE_PARM_DESC(delay_stage, "stage to delay, e.g. tx.icrc (off)");
bool rxe_misses_task_ends;
module_param_named(miss_task_ends, rxe_misses_task_ends, bool, 0644);
MODULE_PARM_DESC(miss_task_ends, "no event says that a task has ended (off)");

module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "length of the delay in ns (0)");
