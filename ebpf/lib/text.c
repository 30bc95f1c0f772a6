// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* three digits, 1 <= value < 1000 but for rounding, which the caller has seen to */
static void three_digits(char into[TEXT_NUMBER], double value, const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(into, TEXT_NUMBER, "%.*f%s", decimals, value, unit);
}

void text_number(char into[TEXT_NUMBER], double value)
{
	static const char *const units[] = {"k", "M", "G", "T", "P", "E"};
	int unit = 0;

	if (!isfinite(value) || value < 0) {
		snprintf(into, TEXT_NUMBER, "-");
		return;
	}
	if (value < 99999.5) {
		int decimals = value < 99.95 && value != floor(value);

		snprintf(into, TEXT_NUMBER, "%.*f", decimals, value);
		return;
	}
	for (value /= 1000; value >= 999.5 && unit < 5; unit++)
		value /= 1000;
	if (value >= 999.5)
		snprintf(into, TEXT_NUMBER, "-");
	else
		three_digits(into, value, units[unit]);
}

void text_time(char into[TEXT_NUMBER], __u64 ns)
{
	static const char *const units[] = {"us", "ms", "s"};
	double value = ns;
	int unit = 0;

	if (ns < 1000) {
		snprintf(into, TEXT_NUMBER, "%uns", (unsigned int)ns);
		return;
	}
	for (value /= 1000; value >= 999.5 && unit < 2; unit++)
		value /= 1000;
	if (value >= 9999.5)
		snprintf(into, TEXT_NUMBER, ">9999s");
	else
		three_digits(into, value, units[unit]);
}

void text_escaped(char *into, size_t size, const char *name)
{
	size_t used = 0;

	for (; *name && used + 1 < size; name++) {
		unsigned char c = *name;
		int n = c < 0x20 || c >= 0x7f || c == '\\'
				? snprintf(into + used, size - used, "\\x%02x", c)
				: snprintf(into + used, size - used, "%c", c);

		if (n >= (int)(size - used))
			break; /* whole escapes only */
		used += n;
	}
	into[used] = '\0';
}

bool text_has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}
