// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "task_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "msg.h"

#define CGROUP2_MAGIC 0x63677270 /* linux/magic.h */
#define NETNS_FOLDER  "/run/netns/"

static bool is_cgroup(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned long)fs.f_type == CGROUP2_MAGIC;
}

/* where cgroup v2 is mounted: the longest beginning of a cgroup's path that is on no other */
static size_t mount_point(const char *path, __u32 *depth)
{
	size_t length = strlen(path);
	char parent[PATH_MAX], *slash;

	*depth = 0;
	snprintf(parent, sizeof(parent), "%s", path);
	while ((slash = strrchr(parent, '/')) && slash != parent) {
		*slash = '\0';
		if (!is_cgroup(parent))
			break;
		length = slash - parent;
		(*depth)++;
	}
	return length;
}

int cgroup_find(const char *folder, struct cgroup_place *place)
{
	char *path = realpath(folder, NULL);
	struct stat st;

	if (!path || stat(path, &st) || !is_cgroup(path)) {
		free(path);
		return msg_error(EXIT_MISSING, "the path is wrong, or on a hierarchy of version 1",
				 "give a folder below /sys/fs/cgroup", "no cgroup '%s'", folder);
	}
	place->id = st.st_ino;
	place->path = path + mount_point(path, &place->level);
	return 0;
}

int netns_find(const char *name, __u32 *inode)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, type;

	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : NETNS_FOLDER, name);
	/* a pipe of that name would make us wait */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	type = fd < 0 ? -1 : ioctl(fd, NS_GET_NSTYPE);
	if (type != CLONE_NEWNET || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return msg_error(EXIT_MISSING, "it has no such name, or is of another kind",
				 "ip netns list; or give a file such as /proc/PID/ns/net",
				 "no network namespace '%s'", name);
	}
	close(fd);
	*inode = st.st_ino;
	return 0;
}

bool netns_has_name(__u32 inode, char *name)
{
	DIR *folder = opendir(NETNS_FOLDER);
	struct dirent *entry;
	bool found = false;
	struct stat own, st;

	/* a namespace that was not mounted there leaves a plain file, of another device */
	if (!folder || stat("/proc/self/ns/net", &own)) {
		if (folder)
			closedir(folder);
		return false;
	}
	while (!found && (entry = readdir(folder))) {
		found = !fstatat(dirfd(folder), entry->d_name, &st, 0) && st.st_dev == own.st_dev &&
			st.st_ino == inode;
		if (found)
			snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	closedir(folder);
	return found;
}

/* A process's path in the hierarchy of version 2, "" if it has none; a negative errno. */
static int cgroup_path(__u32 pid, char **into)
{
	char path[32], *line = NULL, *found = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	/* "0::/a/b": version 2 has number 0 and no controllers */
	while (!found && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::", 3))
			found = line + 3;
	}
	*into = strdup(found ?: "");
	free(line);
	fclose(f);
	return *into ? 0 : -ENOMEM;
}

int cgroup_has(const struct cgroup_place *place, __u32 pid)
{
	size_t length = strlen(place->path);
	char *path;
	int err = cgroup_path(pid, &path), has;

	if (err)
		return err;
	has = path[0] && !strncmp(path, place->path, length) &&
	      (!length || !path[length] || path[length] == '/');
	free(path);
	return has;
}

void cgroup_name(__u32 pid, char *name, size_t size)
{
	char *path;

	name[0] = '\0';
	if (cgroup_path(pid, &path))
		return;
	snprintf(name, size, "%s", path);
	free(path);
}

void netns_name(__u32 pid, char *name, size_t size)
{
	char path[32];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	length = readlink(path, name, size - 1);
	name[length > 0 ? length : 0] = '\0';
}

int netns_has(__u32 inode, __u32 pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	return stat(path, &st) ? -errno : st.st_ino == inode;
}

int process_find(__u32 pid)
{
	if (kill(pid, 0) && errno == ESRCH)
		return msg_error(EXIT_MISSING, "it has ended, or is in another PID namespace",
				 "ps -e", "no process %u", pid);
	return 0;
}

int pidns_find(__u32 *inode)
{
	static const char name[] = "/proc/self/ns/pid";
	struct stat st;

	if (stat(name, &st))
		return msg_error(EXIT_MISSING, "proc is not mounted", "mount -t proc proc /proc",
				 "cannot read %s: %s", name, strerror(errno));
	*inode = st.st_ino;
	return 0;
}

/* A task's process and the parent of that; a negative errno. */
static int process_of(__u32 pid, __u32 *process, __u32 *parent)
{
	char path[32], *line = NULL;
	size_t room = 0;
	FILE *f;

	*process = *parent = 0;
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (getline(&line, &room, f) > 0) {
		sscanf(line, "Tgid: %u", process);
		sscanf(line, "PPid: %u", parent);
	}
	free(line);
	fclose(f);
	return 0;
}

int processes_have(const __u32 pids[PLACE_PIDS], __u32 pid)
{
	__u32 process;
	int err;

	for (int i = 0; i < PLACE_ANCESTORS && pid; i++) {
		err = process_of(pid, &process, &pid);
		if (err)
			return err;
		for (int j = 0; j < PLACE_PIDS && pids[j]; j++)
			if (pids[j] == process)
				return 1;
	}
	return 0;
}

int task_places_have(const struct task_places *places, __u32 pid)
{
	int has = places->cgroup.id ? cgroup_has(&places->cgroup, pid) : 1;

	if (has > 0 && places->netns)
		has = netns_has(places->netns, pid);
	return has > 0 && places->pids[0] ? processes_have(places->pids, pid) : has;
}
