// SPDX-License-Identifier: GPL-2.0-only
#include "dump_interfaces.h"

#include <stdio.h>
#include <string.h>

static bool read_word(const char *path, char *word, size_t size)
{
	FILE *f = fopen(path, "re");
	bool good;

	if (!f)
		return false;
	good = fgets(word, size, f);
	fclose(f);
	if (good)
		word[strcspn(word, "\n")] = '\0';
	return good;
}

/* the network interface under an rxe device, and its address */
static void read_parent(struct interface *i)
{
	char path[256], address[32];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", i->name);
	if (!read_word(path, i->netdev, sizeof(i->netdev)))
		return;
	snprintf(path, sizeof(path), "/sys/class/net/%s/address", i->netdev);
	i->has_mac = read_word(path, address, sizeof(address)) &&
		     sscanf(address, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &i->mac[0], &i->mac[1],
			    &i->mac[2], &i->mac[3], &i->mac[4], &i->mac[5]) == 6;
}

static int add(struct interfaces *all, __u32 dev, const char *name)
{
	struct interface *i;

	if (all->count == MAX_INTERFACES)
		return MAX_INTERFACES - 1;
	i = &all->at[all->count];
	memset(i, 0, sizeof(*i));
	i->dev = dev;
	if (dev == ~0u)
		snprintf(i->name, sizeof(i->name), "none");
	else if (name)
		snprintf(i->name, sizeof(i->name), "%s", name);
	else
		snprintf(i->name, sizeof(i->name), "ib%u", dev);
	read_parent(i);
	i->prefix_length = packet_prefix(i->prefix, all->node, i->name);
	return all->count++;
}

int interfaces_get(struct interfaces *all, __u32 dev)
{
	struct rdma_dev devs[MAX_INTERFACES];
	const char *name = NULL;
	int n;

	for (int i = 0; i < all->count; i++) {
		if (all->at[i].dev == dev)
			return i;
	}
	n = rdma_dev_list(devs, MAX_INTERFACES);
	for (int i = 0; i < n; i++) {
		if (devs[i].index == dev)
			name = devs[i].name;
	}
	return add(all, dev, name);
}

void interfaces_add_present(struct interfaces *all)
{
	struct rdma_dev devs[MAX_INTERFACES];
	int n = rdma_dev_list(devs, MAX_INTERFACES);

	for (int i = 0; i < n; i++)
		interfaces_get(all, devs[i].index);
}
