/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What executes this machine's instructions: under emulation a time is not a real one. */
#ifndef ROCELAB_ACCEL_H
#define ROCELAB_ACCEL_H

/*
 * "tcg" (QEMU emulates), "kvm", "none" (no hypervisor), another hypervisor's signature, or
 * "unknown" where the processor cannot be asked.
 */
const char *accelerator(void);

#endif /* ROCELAB_ACCEL_H */
