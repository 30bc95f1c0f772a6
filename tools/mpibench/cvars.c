// SPDX-License-Identifier: GPL-2.0-or-later
#include "cvars.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "memory.h"

#define LONGEST_NAME 256

/* Open MPI's names; another library has none of these, and reports nothing */
static bool wanted(const char *name)
{
	static const char *const whole[] = {"pml", "btl", "coll", "mpi_yield_when_idle"};

	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (!strcmp(name, whole[i]))
			return true;
	return !strncmp(name, "coll_tuned_", 11);
}

static void print_value(FILE *out, MPI_T_cvar_handle handle, MPI_Datatype type, int count)
{
	if (type == MPI_CHAR) {
		char *text = memory_get((size_t)count + 1, 1);

		MPI_T_cvar_read(handle, text);
		json_string(out, text);
		free(text);
	} else if (type == MPI_INT || type == MPI_UNSIGNED) {
		int number;

		MPI_T_cvar_read(handle, &number);
		fprintf(out, "%d", number);
	} else if (type == MPI_C_BOOL) {
		bool yes;

		MPI_T_cvar_read(handle, &yes);
		fputs(yes ? "true" : "false", out);
	} else if (type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED_LONG_LONG) {
		unsigned long number;

		MPI_T_cvar_read(handle, &number);
		fprintf(out, "%lu", number);
	} else {
		fputs("null", out);
	}
}

void cvars_print(FILE *out)
{
	int number = 0, support;
	const char *comma = "";

	putc('{', out);
	if (MPI_T_init_thread(MPI_THREAD_SINGLE, &support) == MPI_SUCCESS) {
		MPI_T_cvar_get_num(&number);
		for (int i = 0; i < number; i++) {
			int length = LONGEST_NAME, verbosity, bind, scope, count;
			char name[LONGEST_NAME];
			MPI_T_cvar_handle handle;
			MPI_T_enum names;
			MPI_Datatype type;

			if (MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &names, NULL,
						NULL, &bind, &scope) != MPI_SUCCESS ||
			    bind != MPI_T_BIND_NO_OBJECT || !wanted(name) ||
			    MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) != MPI_SUCCESS)
				continue;
			fputs(comma, out);
			json_string(out, name);
			putc(':', out);
			print_value(out, handle, type, count);
			MPI_T_cvar_handle_free(&handle);
			comma = ",";
		}
		MPI_T_finalize();
	}
	putc('}', out);
}
