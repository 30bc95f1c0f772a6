// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print which flags are set after CMPXCHG16B that must not be: 0 on a sound processor.
 *
 * POPFQ leaves QEMU's translator with all flags in one word. The subtraction then gives it an
 * operand in the same place and is itself not evaluated before the instruction that is tried.
 */
#include <stdint.h>
#include <stdio.h>

/* CF, PF, AF, ZF, SF, OF: what SUB changes; bit 1 is always set, IF in user space */
#define EXPECTED (0x8d5UL | 0x2 | 0x200)

int main(void)
{
	static uint64_t pair[2] __attribute__((aligned(16)));
	uint64_t flags, a = 0, d = 0, b = 0, c = 0, operand = UINT64_C(0x885fd8c0);

	asm volatile("pushfq\n\t"
		     "popfq\n\t"
		     "mov %[operand], %%rsi\n\t"
		     "sub %[operand], %%rsi\n\t"
		     "lock cmpxchg16b %[pair]\n\t"
		     "pushfq\n\t"
		     "pop %[flags]"
		     : [pair] "+m"(pair), [flags] "=&r"(flags), "+a"(a), "+d"(d)
		     : [operand] "r"(operand), "b"(b), "c"(c)
		     : "rsi", "cc", "memory");
	printf("%lx\n", (unsigned long)(flags & ~EXPECTED));
	return 0;
}
