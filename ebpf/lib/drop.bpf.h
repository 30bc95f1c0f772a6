/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drops are counted by two programs, because the kernel skips a program that an interrupt finds at
 * work on the same CPU: rxe_drop_late counts those of a queue pair's task, rxe_drop those that may
 * be in the interrupt. A packet's arrival then finds rxe_drop at work only during its first test,
 * and session_missed() has what was skipped nevertheless.
 */
#ifndef ROCELAB_DROP_BPF_H
#define ROCELAB_DROP_BPF_H

#include <linux/types.h>
#include <stdbool.h>

#include "drop.h"

#define DROP_TASK_BIT(id, name, in_task) | (__u64)(in_task) << DROP_##id

static __always_inline bool drop_is_in_task(__u32 reason)
{
	return reason < DROP_COUNT && (0 DROP_REASONS(DROP_TASK_BIT)) >> reason & 1;
}

#endif /* ROCELAB_DROP_BPF_H */
