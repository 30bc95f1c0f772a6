/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes libbpf load programs of events and functions with types that one pass found. */
#ifndef ROCELAB_ATTACH_TYPE_H
#define ROCELAB_ATTACH_TYPE_H

/*
 * For one object that is opened, loaded and attached from here on. Its programs attach to the
 * kernel or to rdma_rxe, not to other modules. Returns 0, or libbpf's error, negative.
 */
int attach_type_register(void);

#endif /* ROCELAB_ATTACH_TYPE_H */
