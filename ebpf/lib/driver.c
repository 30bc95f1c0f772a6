// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "driver.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "module_file.h"

static void read_line(const char *path, char *into, size_t size)
{
	FILE *f = fopen(path, "re");

	into[0] = '\0';
	if (!f)
		return;
	if (fgets(into, size, f))
		into[strcspn(into, "\n")] = '\0';
	fclose(f);
}

static void widen_text(struct driver *driver, __u64 function)
{
	if (!driver->text_begin || function < driver->text_begin)
		driver->text_begin = function;
	if (function >= driver->text_end)
		driver->text_end = function + 1;
}

/* a symbol of the module; an event has a __tracepoint_ one even if tracefs is not mounted */
static void see(const char *name, __u64 address, bool code, void *context)
{
	struct driver *driver = context;

	if (code && address)
		widen_text(driver, address);
	if (!strcmp(name, "__tracepoint_rxe_tx_packet"))
		driver->kind = DRIVER_INSTRUMENTED;
	else if (!strcmp(name, "rxe_skb_tx_dtor"))
		driver->tx_destructor = address;
	else if (!strcmp(name, "do_work"))
		driver->has_work = 1;
}

static void read_kallsyms(struct driver *driver)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[256], module[64];
	unsigned long long address;
	char type;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		/* the kernel's own symbols, nearly all of them, name no module */
		if (strchr(line, '[') &&
		    sscanf(line, "%llx %c %255s [%63[^]]]", &address, &type, name, module) == 4 &&
		    !strcmp(module, DRIVER_MODULE))
			see(name, address, type == 't' || type == 'T', driver);
	}
	fclose(f);
}

/* the number of the module's folder in sysfs, which the kernel does not use again */
static __u64 instance(void)
{
	struct stat st;

	return stat("/sys/module/" DRIVER_MODULE, &st) ? 0 : st.st_ino;
}

bool driver_is_same(const struct driver *driver)
{
	return instance() == driver->instance;
}

void driver_inspect(struct driver *driver)
{
	struct utsname names;

	memset(driver, 0, sizeof(*driver));
	if (!uname(&names))
		snprintf(driver->kernel, sizeof(driver->kernel), "%s", names.release);
	if (access("/sys/module/" DRIVER_MODULE, F_OK))
		return;
	driver->kind = DRIVER_STOCK;
	driver->instance = instance();
	if (!module_file_symbols(DRIVER_MODULE, driver->kernel, see, driver))
		read_kallsyms(driver);
	driver->has_btf = !access("/sys/kernel/btf/vmlinux", R_OK) &&
			  !access("/sys/kernel/btf/" DRIVER_MODULE, R_OK);
	read_line("/sys/module/" DRIVER_MODULE "/version", driver->version,
		  sizeof(driver->version));
	read_line("/sys/module/" DRIVER_MODULE "/srcversion", driver->srcversion,
		  sizeof(driver->srcversion));
}
