// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "module_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUILD_ID     "note.gnu.build-id"
#define MAX_SECTIONS 512

struct module_file {
	int fd;
	Elf *elf;
	size_t names; /* the section that has the sections' names */
	Elf_Scn *symbols;
	GElf_Shdr symbols_header;
	size_t sections;
	__u64 address[MAX_SECTIONS]; /* where the section was loaded; 0: it was not, or no more */
	bool code[MAX_SECTIONS];
};

/* the same note in the file and in the kernel: then it is the file that was loaded */
static bool is_loaded(const char *module, const Elf_Data *note)
{
	char path[PATH_MAX], loaded[256];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/%s/notes/." BUILD_ID, module);
	f = fopen(path, "re");
	if (f) {
		n = fread(loaded, 1, sizeof(loaded), f);
		fclose(f);
	}
	return n && note && n == note->d_size && !memcmp(loaded, note->d_buf, n);
}

static __u64 loaded_at(const char *module, const char *section)
{
	unsigned long long address = 0;
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/%s/sections/%s", module, section);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llx", &address) != 1)
		address = 0;
	fclose(f);
	return address;
}

/* of sections that still exist; the kernel frees .init* when the module runs */
static bool find_sections(struct module_file *m, const char *module)
{
	bool loaded = false, located = false;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(m->elf, section))) {
		size_t i = elf_ndxscn(section);
		GElf_Shdr header;
		const char *name;

		if (i >= MAX_SECTIONS || !gelf_getshdr(section, &header))
			return false;
		name = elf_strptr(m->elf, m->names, header.sh_name);
		if (!name)
			return false;
		if (header.sh_type == SHT_SYMTAB) {
			m->symbols = section;
			m->symbols_header = header;
		}
		if (!strcmp(name, "." BUILD_ID))
			loaded = is_loaded(module, elf_getdata(section, NULL));
		if (!(header.sh_flags & SHF_ALLOC) || !strncmp(name, ".init", strlen(".init")))
			continue;
		m->code[i] = header.sh_flags & SHF_EXECINSTR;
		m->address[i] = loaded_at(module, name);
		located |= m->code[i] && m->address[i];
		m->sections = i + 1;
	}
	return loaded && located && m->symbols;
}

static bool open_file(struct module_file *m, const char *module, const char *path)
{
	memset(m, 0, sizeof(*m));
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (m->fd < 0)
		return false;
	m->elf = elf_begin(m->fd, ELF_C_READ_MMAP, NULL);
	return m->elf && elf_kind(m->elf) == ELF_K_ELF && !elf_getshdrstrndx(m->elf, &m->names) &&
	       find_sections(m, module);
}

static void close_file(struct module_file *m)
{
	elf_end(m->elf);
	if (m->fd >= 0)
		close(m->fd);
}

bool module_file_symbols(const char *module, const char *release,
			 void (*see)(const char *name, __u64 address, bool code, void *context),
			 void *context)
{
	/* our driver, by make and by DKMS; a distribution's modules are compressed */
	static const char *const folders[] = {"updates", "updates/dkms"};
	struct module_file m;
	Elf_Data *data = NULL;
	GElf_Sym symbol;

	elf_version(EV_CURRENT);
	for (unsigned int i = 0; i < sizeof(folders) / sizeof(folders[0]) && !data; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "/lib/modules/%s/%s/%s.ko", release, folders[i],
			 module);
		if (open_file(&m, module, path))
			data = elf_getdata(m.symbols, NULL);
		if (!data)
			close_file(&m);
	}
	if (!data)
		return false;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(m.elf, m.symbols_header.sh_link, symbol.st_name);
		size_t section = symbol.st_shndx;

		/* as the kernel's is_core_symbol() */
		if (name && *name && section < m.sections && m.address[section])
			see(name, m.address[section] + symbol.st_value, m.code[section], context);
	}
	close_file(&m);
	return true;
}
