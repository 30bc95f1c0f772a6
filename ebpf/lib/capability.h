/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this process may do, apart from who runs it. */
#ifndef ROCELAB_CAPABILITY_H
#define ROCELAB_CAPABILITY_H

#include <linux/capability.h>
#include <linux/types.h>
#include <stdbool.h>

/* older headers lack these */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* a member of a set of capabilities */
#define CAPABILITY(number) (1ull << (number))

/* Whether a capability is effective. */
bool capability_has(int capability);

/*
 * Check for what BPF programs need: CAP_BPF and CAP_PERFMON for events of the kernel itself;
 * CAP_SYS_ADMIN, which implies both, for those of a module, because only with it the kernel gives
 * out a module's types (BPF_BTF_GET_FD_BY_ID). Returns 0, or names what is missing and returns the
 * exit status.
 */
int capability_check(bool of_module);

/*
 * Give up for good what is held, except for a set: once programs are attached, descriptors are all
 * that reading them takes. What this process would execute gets no more either; COMMAND is another
 * process by then. Returns 0, or prints the error and returns the exit status.
 */
int capability_give_up(__u64 kept);

#endif /* ROCELAB_CAPABILITY_H */
