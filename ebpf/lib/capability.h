/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this process may do, apart from who runs it. */
#ifndef ROCELAB_CAPABILITY_H
#define ROCELAB_CAPABILITY_H

#include <linux/capability.h>
#include <stdbool.h>

/* older headers lack these */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* Whether a capability is effective. */
bool capability_has(int capability);

/*
 * Check for what BPF programs need: CAP_BPF and CAP_PERFMON for events of the kernel itself;
 * CAP_SYS_ADMIN, which implies both, for those of a module, because only with it the kernel gives
 * out a module's types (BPF_BTF_GET_FD_BY_ID). Returns 0, or names what is missing and returns the
 * exit status.
 */
int capability_check(bool of_module);

#endif /* ROCELAB_CAPABILITY_H */
