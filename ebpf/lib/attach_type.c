// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach_type.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "btf_file.h"
#include "btf_targets.h"
#include "driver.h"

static struct btf_targets of_kernel, of_module;
static int module_btf;
static bool searched;

static int at_open(struct bpf_program *program, long cookie)
{
	(void)cookie;
	return btf_targets_add(&of_kernel, program) ? 0 : -E2BIG;
}

/* The types of a module that is loaded; negative if there are none, or they may not be used. */
static int open_module_btf(const char *module)
{
	__u32 id = 0;

	while (!bpf_btf_get_next_id(id, &id)) {
		char name[64] = "";
		struct bpf_btf_info info = {.name = (__u64)(unsigned long)name,
					    .name_len = sizeof(name)};
		__u32 len = sizeof(info);
		int fd = bpf_btf_get_fd_by_id(id);

		if (fd < 0)
			continue; /* unloaded meanwhile */
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.kernel_btf &&
		    !strcmp(name, module))
			return fd;
		close(fd);
	}
	return -errno;
}

static void search(void)
{
	struct btf_file kernel, module = {};
	bool known = btf_file_read(&kernel, "vmlinux", NULL);

	searched = true;
	btf_targets_find(&of_kernel, &kernel);
	for (unsigned int i = 0; i < of_kernel.count; i++)
		if (!of_kernel.at[i].type && bpf_program__autoload(of_kernel.at[i].program))
			of_module.at[of_module.count++] = of_kernel.at[i];
	/* the kernel looks at it while programs are loaded */
	module_btf = known && of_module.count ? open_module_btf(DRIVER_MODULE) : -ENOENT;
	if (module_btf >= 0)
		btf_file_read(&module, DRIVER_MODULE, &kernel);
	btf_targets_find(&of_module, &module);
	btf_file_free(&module);
	btf_file_free(&kernel);
}

static __u32 type_of(const struct btf_targets *targets, const struct bpf_program *program)
{
	for (unsigned int i = 0; i < targets->count; i++)
		if (targets->at[i].program == program)
			return targets->at[i].type;
	return 0;
}

static int at_load(struct bpf_program *program, struct bpf_prog_load_opts *opts, long cookie)
{
	(void)cookie;
	if (!searched)
		search();
	opts->attach_btf_id = type_of(&of_kernel, program);
	if (!opts->attach_btf_id) {
		opts->attach_btf_id = type_of(&of_module, program);
		opts->attach_btf_obj_fd = module_btf;
	}
	return opts->attach_btf_id ? 0 : -ESRCH;
}

static int at_attach(const struct bpf_program *program, long cookie, struct bpf_link **link)
{
	(void)cookie;
	*link = bpf_program__attach_trace(program);
	return *link ? 0 : -errno;
}

int attach_type_register(void)
{
	static const struct {
		const char *section;
		enum bpf_attach_type type;
	} kinds[] = {
		{"tp_btf+", BPF_TRACE_RAW_TP},
		{"fentry+", BPF_TRACE_FENTRY},
		{"fexit+", BPF_TRACE_FEXIT},
	};
	LIBBPF_OPTS(libbpf_prog_handler_opts, handler, .prog_setup_fn = at_open,
		    .prog_prepare_load_fn = at_load, .prog_attach_fn = at_attach);

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int id = libbpf_register_prog_handler(kinds[i].section, BPF_PROG_TYPE_TRACING,
						      kinds[i].type, &handler);

		if (id < 0)
			return id;
	}
	return 0;
}
