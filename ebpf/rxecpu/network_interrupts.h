/* SPDX-License-Identifier: GPL-2.0-only */
/* Which interrupts are network devices'. */
#ifndef NETWORK_INTERRUPTS_H
#define NETWORK_INTERRUPTS_H

#include <linux/types.h>

/* Mark the numbers below max of the interrupts that network devices have now. */
void interrupts_of_network(__u8 *marks, unsigned int max);

#endif /* NETWORK_INTERRUPTS_H */
