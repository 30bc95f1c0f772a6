/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ROCELAB_BOUNDED_BPF_H
#define ROCELAB_BOUNDED_BPF_H

#define unlikely(condition) __builtin_expect(!!(condition), 0)

/*
 * clang 14 and the verifier of 6.1: a mask must stay next to its use, or the bound is lost. The asm
 * keeps clang from moving it.
 */
#define bounded(value, mask)                       \
	({                                         \
		__u32 bounded_ = (value);          \
		asm volatile("" : "+r"(bounded_)); \
		bounded_ &(mask);                  \
	})

#endif /* ROCELAB_BOUNDED_BPF_H */
