// SPDX-License-Identifier: GPL-2.0-only
#include "network_interrupts.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define NETWORK "/sys/class/net"

static bool mark(__u8 *marks, unsigned int max, unsigned long number)
{
	if (!number || number >= max)
		return false;
	marks[number] = 1;
	return true;
}

/* Documentation/ABI/testing/sysfs-bus-pci: a file for each message-signalled interrupt */
static bool mark_messages(const char *device, __u8 *marks, unsigned int max)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool any = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/msi_irqs", device);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir)))
		any |= mark(marks, max, strtoul(entry->d_name, NULL, 10));
	closedir(dir);
	return any;
}

static bool mark_line(const char *device, __u8 *marks, unsigned int max)
{
	char path[PATH_MAX];
	unsigned long number = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/irq", device);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%lu", &number) != 1)
		number = 0;
	fclose(f);
	return mark(marks, max, number);
}

void interrupts_of_network(__u8 *marks, unsigned int max)
{
	DIR *dir = opendir(NETWORK);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		/* a virtio device's interrupts are those of the PCI device around it */
		static const char *const places[] = {"device", "device/.."};
		bool found = false;

		for (int i = 0; i < 2 && !found && entry->d_name[0] != '.'; i++) {
			char device[PATH_MAX - 64];

			snprintf(device, sizeof(device), NETWORK "/%s/%s", entry->d_name,
				 places[i]);
			found = mark_messages(device, marks, max) || mark_line(device, marks, max);
		}
	}
	if (dir)
		closedir(dir);
}
