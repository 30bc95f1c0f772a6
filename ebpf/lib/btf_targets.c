// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "btf_targets.h"

#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

#include "btf_file.h"
#include "text.h"

#define MAX_TARGETS (sizeof(((struct btf_targets *)0)->at) / sizeof(struct btf_target))
#define TRACEPOINT  "btf_trace_" /* before a tracepoint's name: the typedef of its arguments */

bool btf_targets_add(struct btf_targets *targets, struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);
	const char *slash = strchr(section, '/');

	if (!slash || targets->count == MAX_TARGETS)
		return false;
	targets->at[targets->count++] = (struct btf_target){
		.name = slash + 1,
		.event = text_has_prefix(section, "tp_btf/") || text_has_prefix(section, "raw_tp/"),
		.program = program,
	};
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct btf_target *left = a, *right = b;

	return left->event - right->event ?: strcmp(left->name, right->name);
}

/* the first target that is not below the key */
static unsigned int lower_bound(const struct btf_targets *targets, const struct btf_target *key)
{
	unsigned int low = 0, high = targets->count;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (compare(&targets->at[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void btf_targets_find(struct btf_targets *targets, const struct btf_file *file)
{
	const struct btf_type *type = file->types;

	qsort(targets->at, targets->count, sizeof(targets->at[0]), compare);
	for (__u32 id = file->first; type; id++, type = btf_file_next(file, type)) {
		struct btf_target key = {.event = BTF_INFO_KIND(type->info) == BTF_KIND_TYPEDEF};

		if (!key.event && BTF_INFO_KIND(type->info) != BTF_KIND_FUNC)
			continue;
		key.name = btf_file_string(file, type->name_off);
		if (key.event && !text_has_prefix(key.name, TRACEPOINT))
			continue;
		if (key.event)
			key.name += strlen(TRACEPOINT);
		/* several programs may have one target */
		for (unsigned int i = lower_bound(targets, &key);
		     i < targets->count && !compare(&targets->at[i], &key); i++)
			targets->at[i].type = targets->at[i].type ?: id;
	}
}
