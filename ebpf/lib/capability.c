// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capability.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "msg.h"

bool capability_has(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	return !syscall(SYS_capget, &header, data) &&
	       data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

int capability_check(bool of_module)
{
	bool bpf = capability_has(CAP_BPF), perfmon = capability_has(CAP_PERFMON);
	const char *missing;
	char action[160];

	if (capability_has(CAP_SYS_ADMIN) || (!of_module && bpf && perfmon))
		return 0;
	if (of_module)
		missing = "cap_sys_admin";
	else
		missing = bpf ? "cap_perfmon" : perfmon ? "cap_bpf" : "cap_bpf,cap_perfmon";
	snprintf(action, sizeof(action),
		 "run it with sudo, or give it these: setpriv(1), or setcap %s=ep $(which %s)",
		 missing, msg_program);
	return msg_error(EXIT_MISSING,
			 of_module ? "an ordinary user runs it; a module's events need more than "
				     "cap_bpf and cap_perfmon"
				   : "an ordinary user runs it",
			 action, "BPF programs need capabilities that it lacks: %s", missing);
}

int capability_give_up(__u64 kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
	int err = syscall(SYS_capget, &header, data);

	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= kept >> (32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	/* root would have all again in a program that it executes */
	err = err ?: prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ?: syscall(SYS_capset, &header, data);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot give up capabilities: %s",
			       strerror(errno))
		   : 0;
}
