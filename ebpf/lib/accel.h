/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What executes this machine's instructions. Under emulation, times are not real. */
#ifndef ROCELAB_ACCEL_H
#define ROCELAB_ACCEL_H

/*
 * "tcg" (QEMU emulates), "kvm", "none" (no hypervisor), another hypervisor's signature, or
 * "unknown" if the processor cannot tell.
 */
const char *accelerator(void);

#endif /* ROCELAB_ACCEL_H */
