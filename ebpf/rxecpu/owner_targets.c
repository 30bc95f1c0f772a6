// SPDX-License-Identifier: GPL-2.0-only
#include "owner_targets.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network_interrupts.h"
#include "load.h"
#include "msg.h"
#include "task_place.h"

#include "stacks.h"

#include "rxecpu.skel.h"

/* the interface below an rxe device: its events of receipt name that */
static unsigned int interface_of(const char *device)
{
	char path[PATH_MAX], name[IF_NAMESIZE + 1] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", device);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	fclose(f);
	return if_nametoindex(name);
}

static int find_device(struct rxecpu_bpf *skel, const char *device, const struct driver *driver)
{
	unsigned int ifindex;
	__u32 index;
	int status = load_find_device(device, &index);

	if (status)
		return status;
	ifindex = interface_of(device);
	if (driver->kind != DRIVER_INSTRUMENTED || !ifindex)
		return msg_error(EXIT_MISSING,
				 "it is no rxe device, or the stock driver is loaded, whose events "
				 "do not name the device",
				 "leave out --device, or load rocelab's driver: make module",
				 "cannot count the work for '%s' alone", device);
	skel->bss->device_index = index;
	skel->bss->device_ifindex = ifindex;
	return 0;
}

int targets_choose(struct rxecpu_bpf *skel, const struct config *config,
		   const struct driver *driver)
{
	struct cgroup_place cgroup = {};
	int status = 0;

	skel->rodata->by_pid = config->npids || config->session.command;
	skel->rodata->one_device = config->device;
	skel->rodata->comms = config->ncomms;
	memcpy((void *)skel->rodata->comm, config->comms, sizeof(config->comms));
	if (config->cgroup)
		status = cgroup_find(config->cgroup, &cgroup);
	skel->rodata->cgroup_id = cgroup.id;
	skel->rodata->cgroup_level = cgroup.level;
	if (!status && config->device)
		status = find_device(skel, config->device, driver);
	if (!status && !config->device) {
		skel->rodata->module_begin = driver->text_begin;
		skel->rodata->module_end = driver->text_end;
	}
	return status;
}

static int add(struct rxecpu_bpf *skel, __u32 pid)
{
	__u8 one = 1;

	return bpf_map__update_elem(skel->maps.processes, &pid, sizeof(pid), &one, sizeof(one),
				    BPF_ANY)
		       ? msg_error(EXIT_RUN, NULL, NULL, "cannot write the BPF maps: %s",
				   strerror(errno))
		       : 0;
}

static int add_all(struct rxecpu_bpf *skel, const struct config *config, pid_t command)
{
	int status = command > 0 ? add(skel, command) : 0;

	for (unsigned int i = 0; i < config->npids && !status; i++) {
		status = process_find(config->pids[i]) ?: add(skel, config->pids[i]);
	}
	return status;
}

int targets_find(struct rxecpu_bpf *skel, const struct config *config, const struct driver *driver,
		 pid_t command)
{
	int status = config->device ? find_device(skel, config->device, driver) : 0;

	memset(skel->bss->network_irq, 0, sizeof(skel->bss->network_irq));
	interrupts_of_network(skel->bss->network_irq, MAX_IRQS);
	return status ?: add_all(skel, config, command);
}
