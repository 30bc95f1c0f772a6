// SPDX-License-Identifier: GPL-2.0-only
#include "user_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a process may map as much as it likes: more than any benchmark has is not looked at */
#define MAX_FILES     1024
#define MAX_PROCESSES 4096

static struct process_code *find_process(const struct user_code *u, __u32 tgid)
{
	for (size_t i = 0; i < u->nprocesses; i++) {
		if (u->processes[i].tgid == tgid)
			return &u->processes[i];
	}
	return NULL;
}

static struct process_code *add_process(struct user_code *u, __u32 tgid)
{
	struct process_code *more;

	if (u->nprocesses == MAX_PROCESSES)
		return NULL;
	more = realloc(u->processes, (u->nprocesses + 1) * sizeof(*more));
	if (!more)
		return NULL;
	u->processes = more;
	u->processes[u->nprocesses] = (struct process_code){.tgid = tgid};
	return &u->processes[u->nprocesses++];
}

static void add_file(struct process_code *p, const struct mapped_file *file)
{
	struct mapped_file *more;

	for (size_t i = 0; i < p->nfiles; i++) {
		const struct mapped_file *known = &p->files[i];

		if (known->begin == file->begin && known->end == file->end &&
		    known->offset == file->offset && !strcmp(known->name, file->name))
			return;
	}
	if (p->nfiles == MAX_FILES)
		return;
	more = realloc(p->files, (p->nfiles + 1) * sizeof(*more));
	if (!more)
		return;
	p->files = more;
	more[p->nfiles] = *file;
	more[p->nfiles].name = strdup(file->name);
	if (more[p->nfiles].name)
		p->nfiles++;
}

/* "7f12-7f34 r-xp 00026000 fe:00 1234    /usr/lib/libc.so.6\n" */
static void add_line(struct process_code *p, char *line)
{
	unsigned long long begin, end, offset;
	struct mapped_file file;
	char mode[5], *slash;
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &begin, &end, mode, &offset, &path) < 4 ||
	    !strchr(mode, 'x') || !path || !line[path])
		return;
	slash = strrchr(line + path, '/');
	file = (struct mapped_file){begin, end, offset, slash ? slash + 1 : line + path};
	add_file(p, &file);
}

void user_code_look(struct user_code *u, __u32 tgid)
{
	struct process_code *p = find_process(u, tgid) ?: add_process(u, tgid);
	size_t room = 0, lines = 0;
	char path[32], *line = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	f = p ? fopen(path, "re") : NULL;
	if (!f)
		return;
	while (lines++ < 8 * MAX_FILES && getline(&line, &room, f) > 0)
		add_line(p, line);
	free(line);
	fclose(f);
}

const struct mapped_file *user_code_find(const struct user_code *u, __u32 tgid, __u64 address)
{
	const struct process_code *p = find_process(u, tgid);
	const struct mapped_file *found = NULL;

	for (size_t i = 0; p && i < p->nfiles; i++) {
		if (address < p->files[i].begin || address >= p->files[i].end)
			continue;
		/* execve() or dlclose(): we do not know which one it was */
		if (found)
			return NULL;
		found = &p->files[i];
	}
	return found;
}

void user_code_free(struct user_code *u)
{
	for (size_t i = 0; i < u->nprocesses; i++) {
		while (u->processes[i].nfiles)
			free(u->processes[i].files[--u->processes[i].nfiles].name);
		free(u->processes[i].files);
	}
	free(u->processes);
	*u = (struct user_code){};
}
