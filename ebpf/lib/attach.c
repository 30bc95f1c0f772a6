// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "msg.h"

#define MAX_LINKS ((int)(sizeof(((struct attached *)0)->links) / sizeof(struct bpf_link *)))

bool attach_takes(const struct bpf_program *program)
{
	if (bpf_program__type(program) == BPF_PROG_TYPE_RAW_TRACEPOINT)
		return strchr(bpf_program__section_name(program), '/');
	return bpf_program__type(program) == BPF_PROG_TYPE_TRACING &&
	       bpf_program__expected_attach_type(program) != BPF_TRACE_ITER;
}

int attach_backwards(struct attached *a, const struct bpf_object *object,
		     bool (*wanted)(const struct bpf_program *program, const void *context),
		     const void *context)
{
	struct bpf_program *program = bpf_object__prev_program(object, NULL);

	for (; program; program = bpf_object__prev_program(object, program)) {
		struct bpf_link *link;

		if (!attach_takes(program) || !bpf_program__autoload(program) ||
		    (wanted && !wanted(program, context)))
			continue;
		errno = ENOSPC;
		link = a->n < MAX_LINKS ? bpf_program__attach(program) : NULL;
		if (!link)
			return msg_error(EXIT_RUN, NULL, NULL, "cannot attach to %s: %s",
					 bpf_program__section_name(program), strerror(errno));
		a->links[a->n++] = link;
	}
	return 0;
}

void attach_undo(struct attached *a)
{
	while (a->n)
		bpf_link__destroy(a->links[--a->n]);
}
