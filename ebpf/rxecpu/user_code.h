/* SPDX-License-Identifier: GPL-2.0-only */
/* The files that processes run code from, looked up while they live. */
#ifndef USER_CODE_H
#define USER_CODE_H

#include <linux/types.h>
#include <stddef.h>

struct mapped_file {
	__u64 begin, end, offset;
	char *name; /* without folders */
};

struct process_code {
	__u32 tgid;
	struct mapped_file *files;
	size_t nfiles;
};

struct user_code {
	struct process_code *processes;
	size_t nprocesses;
};

/* Add the code of a process as it is now. What cannot be read is left out. */
void user_code_look(struct user_code *u, __u32 tgid);
/*
 * The file that the process had at an address; NULL: none is known, or several were there one after
 * another.
 */
const struct mapped_file *user_code_find(const struct user_code *u, __u32 tgid, __u64 address);
void user_code_free(struct user_code *u);

#endif /* USER_CODE_H */
