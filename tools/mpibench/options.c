// SPDX-License-Identifier: GPL-2.0-or-later
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE	  2
#define MAX_BYTES ((size_t)1 << 30)

static const char HELP[] =
	"usage: mpirun … mpibench [OPTIONS] TEST…\n"
	"\n"
	"MPI benchmarks by the method of a known suite, several in one mpirun. The data of each size\n"
	"and root are verified before the time is measured.\n"
	"\n"
	"  -s, --sizes LIST       bytes, such as 1,64,4096 (default: 4 to 16384, times 4 each)\n"
	"  -m, --method NAME      osu (default), imb or skampi: loop, warm-up, barriers, averaging\n"
	"  -i, --iterations N     instead of the method's own number; the maximum for skampi\n"
	"  -w, --warmup N         instead of the method's own, or a tenth of --iterations\n"
	"  -W, --window N         messages in flight in streaming tests (default 64)\n"
	"  -t, --trials N         repeat each measurement N times (default 1), each in the JSON\n"
	"  -j, --json             rocelab.mpibench/1 instead of a table\n"
	"  -e, --each             with --json: the times between the operations of pair tests, too\n"
	"  -l, --list             list the tests\n"
	"  -V, --version\n"
	"  -h, --help\n"
	"\n"
	"Exit codes: 0 success, 1 corrupted data, 2 usage, 3 out of memory.\n";

static bool loud;

static int refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int refuse(const char *format, ...)
{
	va_list arguments;

	if (loud) {
		va_start(arguments, format);
		fputs("mpibench: ", stderr);
		vfprintf(stderr, format, arguments);
		fputs("\n  what to do: see mpibench --help\n", stderr);
		va_end(arguments);
	}
	return USAGE;
}

static bool number(const char *text, char **end, unsigned long most, unsigned long *value)
{
	errno = 0;
	if (!isdigit((unsigned char)*text))
		return false;
	*value = strtoul(text, end, 10);
	return !errno && *value <= most;
}

static bool whole(const char *text, unsigned long least, unsigned long most, unsigned long *value)
{
	char *end;

	return number(text, &end, most, value) && !*end && *value >= least;
}

static int read_sizes(struct options *options, const char *text)
{
	unsigned long value;
	char *end;

	options->number_of_sizes = 0;
	for (const char *at = text;; at = end + 1) {
		if (!number(at, &end, MAX_BYTES, &value) || (*end && *end != ','))
			return refuse("--sizes %s: not a list of bytes, each up to %zu", text,
				      MAX_BYTES);
		if (options->number_of_sizes == MAX_SIZES)
			return refuse("--sizes: more than %d", MAX_SIZES);
		options->sizes[options->number_of_sizes++] = value;
		if (!*end)
			return GO_ON;
	}
}

static int read_option(struct options *options, int letter)
{
	unsigned long value = 0;

	switch (letter) {
	case 's':
		return read_sizes(options, optarg);
	case 'm':
		options->method = method_find(optarg);
		return options->method
			       ? GO_ON
			       : refuse("--method %s: choose from %s", optarg, METHOD_NAMES);
	case 'i':
		if (!whole(optarg, 1, INT_MAX, &value))
			return refuse("--iterations %s: not a number from 1 on", optarg);
		options->counts.iterations = (long)value;
		return GO_ON;
	case 'w':
		if (!whole(optarg, 0, INT_MAX, &value))
			return refuse("--warmup %s: not a number", optarg);
		options->counts.warmup = (long)value;
		return GO_ON;
	case 'W':
		if (!whole(optarg, 1, 65536, &value))
			return refuse("--window %s: not a number from 1 to 65536", optarg);
		options->window = (int)value;
		return GO_ON;
	case 't':
		if (!whole(optarg, 1, MAX_TRIALS, &value))
			return refuse("--trials %s: not a number from 1 to %d", optarg, MAX_TRIALS);
		options->counts.trials = (int)value;
		return GO_ON;
	case 'j':
		options->json = true;
		return GO_ON;
	case 'e':
		options->each = true;
		return GO_ON;
	case 'l':
		for (int i = 0; loud && test_at(i); i++)
			puts(test_at(i)->name);
		return 0;
	case 'V':
		if (loud)
			puts("mpibench " BENCHMARK_VERSION);
		return 0;
	case 'h':
		if (loud)
			fputs(HELP, stdout);
		return 0;
	default:
		return refuse("unknown option, or an option without its value");
	}
}

static int check_sizes(const struct options *options)
{
	for (int t = 0; t < options->number_of_tests; t++)
		for (int s = 0; s < options->number_of_sizes; s++)
			if (options->tests[t]->reduces && options->sizes[s] % ELEMENT)
				return refuse("%s adds floats of %zu bytes: no messages of %zu",
					      options->tests[t]->name, ELEMENT, options->sizes[s]);
	return GO_ON;
}

int options_read(struct options *options, int argc, char **argv, bool speaks)
{
	static const struct option longs[] = {
		{"sizes", required_argument, NULL, 's'},
		{"method", required_argument, NULL, 'm'},
		{"iterations", required_argument, NULL, 'i'},
		{"warmup", required_argument, NULL, 'w'},
		{"window", required_argument, NULL, 'W'},
		{"trials", required_argument, NULL, 't'},
		{"json", no_argument, NULL, 'j'},
		{"each", no_argument, NULL, 'e'},
		{"list", no_argument, NULL, 'l'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	int letter, status;

	loud = speaks;
	opterr = 0;
	*options = (struct options){.method = method_find("osu"), .counts = {-1, -1, 1}};
	for (size_t size = 4; size <= 16384; size *= 4)
		options->sizes[options->number_of_sizes++] = size;
	while ((letter = getopt_long(argc, argv, "s:m:i:w:W:t:jelVh", longs, NULL)) != -1) {
		status = read_option(options, letter);
		if (status != GO_ON)
			return status;
	}
	for (; optind < argc; optind++) {
		const struct test *test = test_find(argv[optind]);

		if (!test)
			return refuse("there is no test %s (--list has them)", argv[optind]);
		if (options->number_of_tests == MAX_TESTS)
			return refuse("more than %d tests", MAX_TESTS);
		options->tests[options->number_of_tests++] = test;
	}
	if (!options->number_of_tests)
		return refuse("no test given (--list has them)");
	if (!options->window)
		options->window = options->method->window;
	return check_sizes(options);
}
