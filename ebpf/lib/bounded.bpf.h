/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ROCELAB_BOUNDED_BPF_H
#define ROCELAB_BOUNDED_BPF_H

#define unlikely(condition) __builtin_expect(!!(condition), 0)

/*
 * The verifier of 6.1 loses the bound if clang 14 moves a mask away from its use. The asm keeps it
 * there.
 */
#define bounded(value, mask)                       \
	({                                         \
		__u32 bounded_ = (value);          \
		asm volatile("" : "+r"(bounded_)); \
		bounded_ &(mask);                  \
	})

#endif /* ROCELAB_BOUNDED_BPF_H */
