// SPDX-License-Identifier: GPL-2.0-only
#include "cpu_report.h"

#include <string.h>

const char *const context_names[CONTEXTS] = {
	"idle",
	"user",
	"syscall",
	"fault",
	"kthread",
	"hardirq",
	"softirq.hi",
	"softirq.timer",
	"softirq.net_tx",
	"softirq.net_rx",
	"softirq.block",
	"softirq.irq_poll",
	"softirq.tasklet",
	"softirq.sched",
	"softirq.hrtimer",
	"softirq.rcu",
};

static const char *const owner_names[OWNERS] = {"other", "benchmark", "rxe", "network"};

const char *account_owner(int account)
{
	return account_context(account) == CONTEXT_IDLE ? "none" : owner_names[account % OWNERS];
}

const char *const waiter_names[WAITERS] = {
	[WAITER_RXE] = "rxe",
	[WAITER_KSOFTIRQD] = "ksoftirqd",
};

void times_sum(const struct report *r, __u64 ns[ACCOUNTS])
{
	memset(ns, 0, ACCOUNTS * sizeof(*ns));
	for (int i = 0; i < r->ncpus; i++) {
		for (int a = 0; a < ACCOUNTS; a++)
			ns[a] += r->cpus[i].ns[a];
	}
}

__s64 unaccounted(const struct report *r, const __u64 ns[ACCOUNTS], __u64 length)
{
	__s64 left = length * r->ncpus;

	for (int a = 0; a < ACCOUNTS; a++)
		left -= ns[a];
	return left;
}
