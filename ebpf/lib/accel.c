// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "accel.h"

#include <ctype.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#define CPUID_1_ECX_HYPERVISOR (1u << 31)
#define CPUID_HYPERVISOR       0x40000000u

const char *accelerator(void)
{
	static char signature[13];
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d))
		return "unknown";
	if (!(c & CPUID_1_ECX_HYPERVISOR))
		return "none";
	__cpuid(CPUID_HYPERVISOR, a, b, c, d);
	memcpy(signature, &b, 4);
	memcpy(signature + 4, &c, 4);
	memcpy(signature + 8, &d, 4);
	if (!strcmp(signature, "TCGTCGTCGTCG"))
		return "tcg";
	if (!strcmp(signature, "KVMKVMKVM"))
		return "kvm";
	for (char *p = signature; *p; p++) {
		if (!isprint((unsigned char)*p))
			*p = '?';
	}
	return signature[0] ? signature : "unknown";
}
#else
const char *accelerator(void)
{
	return "unknown";
}
#endif
